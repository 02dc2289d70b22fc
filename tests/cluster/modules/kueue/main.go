// SPDX-License-Identifier: Apache-2.0

// Kueue as far as pods need it: its queues, its scheduler, its webhooks and its integration of pods. What its own program links
// besides, the other integrations, a server and the making of certificates, takes most of the time to compile.
package main

import (
	"flag"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	configapi "sigs.k8s.io/kueue/apis/config/v1beta1"
	kueuealpha "sigs.k8s.io/kueue/apis/kueue/v1alpha1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta1"
	"sigs.k8s.io/kueue/pkg/cache"
	"sigs.k8s.io/kueue/pkg/config"
	"sigs.k8s.io/kueue/pkg/constants"
	"sigs.k8s.io/kueue/pkg/controller/core"
	"sigs.k8s.io/kueue/pkg/controller/core/indexer"
	"sigs.k8s.io/kueue/pkg/controller/jobframework"
	_ "sigs.k8s.io/kueue/pkg/controller/jobs/pod"
	"sigs.k8s.io/kueue/pkg/metrics"
	"sigs.k8s.io/kueue/pkg/queue"
	"sigs.k8s.io/kueue/pkg/scheduler"
	"sigs.k8s.io/kueue/pkg/util/kubeversion"
	"sigs.k8s.io/kueue/pkg/webhooks"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	file := flag.String("config", "", "the file of its configuration")
	flag.Parse() // also --kubeconfig, of controller-runtime
	ctrl.SetLogger(zap.New())
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, kueue.AddToScheme, kueuealpha.AddToScheme, configapi.AddToScheme,
	} {
		must(add(scheme))
	}
	options, configuration, err := config.Load(scheme, *file)
	must(err)
	frameworks := jobframework.WithEnabledFrameworks(configuration.Integrations.Frameworks)
	metrics.Register()
	way := ctrl.GetConfigOrDie()
	manager, err := ctrl.NewManager(way, options)
	must(err)
	ctx := ctrl.SetupSignalHandler()
	must(indexer.Setup(ctx, manager.GetFieldIndexer()))
	must(jobframework.SetupIndexes(ctx, manager.GetFieldIndexer(), frameworks))
	asked, err := discovery.NewDiscoveryClientForConfig(way)
	must(err)
	version := kubeversion.NewServerVersionFetcher(asked)
	must(manager.Add(version))
	must(version.FetchServerVersion())

	admitted := cache.New(manager.GetClient())
	queues := queue.NewManager(manager.GetClient(), admitted)
	go queues.CleanUpOnContext(ctx)
	go admitted.CleanUpOnContext(ctx)
	_, err = core.SetupControllers(manager, queues, admitted, &configuration)
	must(err)
	_, err = webhooks.Setup(manager)
	must(err)
	must(jobframework.SetupControllers(ctx, manager, ctrl.Log, frameworks,
		jobframework.WithKubeServerVersion(version),
		jobframework.WithIntegrationOptions(corev1.SchemeGroupVersion.WithKind("Pod").String(), configuration.Integrations.PodOptions),
		jobframework.WithManagerName(constants.KueueName),
		jobframework.WithCache(admitted),
		jobframework.WithQueues(queues)))
	must(manager.Add(scheduler.New(queues, admitted, manager.GetClient(), manager.GetEventRecorderFor(constants.AdmissionName))))
	must(manager.AddHealthzCheck("healthz", healthz.Ping))
	must(manager.AddReadyzCheck("readyz", manager.GetWebhookServer().StartedChecker()))
	must(manager.Start(ctx))
}
