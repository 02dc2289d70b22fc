// Required by the module of Kubernetes, and imported by nothing: an empty module in its place.
module k8s.io/sample-cli-plugin

go 1.22.0
