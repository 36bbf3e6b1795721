// Command pulumi-resource-kafka bridges the Terraform provider for Kafka to Pulumi.
//
// It offers the resource types, property names and defaults of the published pulumi-kafka plugin, so that the Python SDK
// of the same version cannot tell them apart. It is built only where that plugin cannot be downloaded.
package main

import (
	"github.com/Mongey/terraform-provider-kafka/kafka"
	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfbridge"
	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfbridge/tokens"
	shimv2 "github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfshim/sdk-v2"
)

// version is set by the linker; it must be that of the Python SDK.
var version = "0.0.0"

// emptySchema satisfies the plugin protocol. The SDK's classes were generated from the published schema; programs in
// Pulumi YAML, which would read it here, are not served.
const emptySchema = "{}"

func main() {
	tfbridge.Main("kafka", version, provider(), []byte(emptySchema))
}

func provider() tfbridge.ProviderInfo {
	info := tfbridge.ProviderInfo{
		P:                              shimv2.NewProvider(kafka.Provider()),
		Name:                           "kafka",
		Version:                        version,
		GitHubOrg:                      "Mongey",
		EnableZeroDefaultSchemaVersion: true,
		Config: map[string]*tfbridge.SchemaInfo{
			"tls_enabled":     environmentDefault("KAFKA_ENABLE_TLS", true),
			"skip_tls_verify": environmentDefault("KAFKA_SKIP_VERIFY", false),
			"sasl_mechanism":  environmentDefault("KAFKA_SASL_MECHANISM", "plain"),
		},
		Resources: map[string]*tfbridge.ResourceInfo{
			// The published plugin renames both, since every resource already has a name and a type.
			"kafka_acl": {Fields: map[string]*tfbridge.SchemaInfo{
				"resource_name": {Name: "aclResourceName"},
				"resource_type": {Name: "aclResourceType"},
			}},
		},
		// Nor do its functions follow the scheme of its resources.
		DataSources: map[string]*tfbridge.DataSourceInfo{
			"kafka_topic":  {Tok: "kafka:index:getTopic"},
			"kafka_topics": {Tok: "kafka:index:getTopics"},
		},
	}
	info.MustComputeTokens(tokens.SingleModule("kafka_", "index", tokens.MakeStandard("kafka")))
	return info
}

func environmentDefault(variable string, otherwise any) *tfbridge.SchemaInfo {
	return &tfbridge.SchemaInfo{Default: &tfbridge.DefaultInfo{EnvVars: []string{variable}, Value: otherwise}}
}
