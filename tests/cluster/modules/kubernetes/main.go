// SPDX-License-Identifier: Apache-2.0

// One executable with etcd and all of Kubernetes: the name it is called by says which part it is. Linked
// separately the parts take five times the room, and most of the time to build them is spent on linking.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

var servers = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": manager.NewControllerManagerCommand,
	"kube-proxy":              proxy.NewProxyCommand,
	"kubelet":                 kubelet.NewKubeletCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
}

func main() {
	name := filepath.Base(os.Args[0])
	switch server, known := servers[name]; {
	case known:
		os.Exit(cli.Run(server()))
	case name == "etcd":
		etcdmain.Main(os.Args)
	case name == "kubectl":
		if cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()) != nil {
			os.Exit(1)
		}
	default:
		fmt.Fprintf(os.Stderr, "%s: this is the name of no part of Kubernetes\n", name)
		os.Exit(2)
	}
}
