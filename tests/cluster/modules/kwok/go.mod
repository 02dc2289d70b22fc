module cluster/kwok

go 1.22.3

require sigs.k8s.io/kwok v0.6.1
