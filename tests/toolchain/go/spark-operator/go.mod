module headwater/toolchain/spark-operator

go 1.24

require github.com/kubeflow/spark-operator/v2 v2.4.0
