// Required by the module of Kubernetes, and imported by nothing: an empty module in its place.
module k8s.io/sample-apiserver

go 1.22.0
