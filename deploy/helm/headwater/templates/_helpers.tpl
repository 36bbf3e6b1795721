{{- define "headwater.labels" -}}
app.kubernetes.io/part-of: headwater
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "headwater.agent" -}}
{{ printf "%s-agent" .Release.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "headwater.agentLabels" -}}
app.kubernetes.io/name: headwater-agent
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: agent
{{- end }}

{{- /* Arguments: which (agent, runtime), image. There is no default image: a tag can be moved to another image. */ -}}
{{- define "headwater.image" -}}
{{- $repository := required (printf "Set %s.image.repository to the image in your registry." .which) .image.repository -}}
{{- $digest := required (printf "Set %s.image.digest to the digest of the image that you have pushed." .which) .image.digest -}}
{{ printf "%s@%s" $repository $digest }}
{{- end }}

{{- /* A document as a text: it is written as a text, or as YAML. */ -}}
{{- define "headwater.document" -}}
{{- if kindIs "string" . }}{{ . }}{{ else }}{{ toYaml . }}{{ end }}
{{- end }}

{{- /* The digest of an application's document and files. */ -}}
{{- define "headwater.digest" -}}
{{ printf "%s%s" (include "headwater.document" .document) (.files | default dict | toYaml) | sha256sum }}
{{- end }}

{{- /* A size of Kubernetes or of the JVM, such as 512Mi or 1g, in mebibytes. */ -}}
{{- define "headwater.mebibytes" -}}
{{- $factor := get (dict "M" 1 "G" 1024 "T" 1048576) (regexFind "[A-Za-z]" . | upper) -}}
{{ mul (regexFind "[0-9]+" .) $factor }}
{{- end }}

{{- define "headwater.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "headwater.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "headwater.scraped" -}}
prometheus.io/scrape: "true"
prometheus.io/port: "9878"
prometheus.io/path: /metrics
{{- end }}
