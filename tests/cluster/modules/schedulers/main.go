// SPDX-License-Identifier: Apache-2.0

// The schedulers that place gangs by PodGroups, in one executable: that of Kubernetes with the plugin coscheduling, and Volcano's. The
// name it is called by says which.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	"k8s.io/component-base/cli"
	"k8s.io/klog/v2"
	kubernetes "k8s.io/kubernetes/cmd/kube-scheduler/app"
	_ "sigs.k8s.io/scheduler-plugins/apis/config/scheme"
	"sigs.k8s.io/scheduler-plugins/pkg/coscheduling"
	volcano "volcano.sh/volcano/cmd/scheduler/app"
	"volcano.sh/volcano/cmd/scheduler/app/options"
	_ "volcano.sh/volcano/pkg/scheduler/actions"
)

func runVolcano() error {
	klog.InitFlags(nil) // it looks for a flag of these
	server := options.NewServerOption()
	flags := pflag.NewFlagSet("volcano", pflag.ExitOnError) // Kubernetes has flags of the same names
	server.AddFlags(flags)
	if err := flags.Parse(os.Args[1:]); err != nil {
		return err
	}
	server.RegisterOptions()
	return volcano.Run(server)
}

func main() {
	switch name := filepath.Base(os.Args[0]); name {
	case "coscheduling":
		os.Exit(cli.Run(kubernetes.NewSchedulerCommand(kubernetes.WithPlugin(coscheduling.Name, coscheduling.New))))
	case "volcano":
		if err := runVolcano(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		fmt.Fprintf(os.Stderr, "%s: this is the name of no scheduler\n", name)
		os.Exit(2)
	}
}
