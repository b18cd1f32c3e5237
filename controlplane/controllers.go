package main

import (
	"context"
	"strings"

	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
)

// controllers returns the controllers that packages need: they aggregate roles and create service accounts,
// pods and endpoints. The garbage collector is a separate component (see collector). The quota controller is
// excluded, because it watches every kind. The controller of token Secrets is excluded, because every runtime
// may create Secrets, and would get a token of every ServiceAccount. Tokens are requested from the API
// server.
func controllers() []string {
	return []string{
		names.ClusterRoleAggregationController,
		names.CronJobController,
		names.DeploymentController,
		names.EndpointSliceController,
		names.EndpointsController,
		names.JobController,
		names.NamespaceController,
		names.ReplicaSetController,
		names.RootCACertificatePublisherController,
		names.ServiceAccountController,
		names.TTLAfterFinishedController,
	}
}

// A controllerManager contains the settings of kube-controller-manager.
type controllerManager struct{ kubeconfig, ca string }

// run runs the controllers until the context ends. The API server must be ready,
// and its options applied: the registries of features are shared.
func (c controllerManager) run(ctx context.Context) error {
	o, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return err
	}
	known, disabled, aliases := app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases()
	if err := parse(o.Flags(known, disabled, aliases), c.flags()); err != nil {
		return err
	}
	config, err := o.Config(ctx, known, disabled, aliases)
	if err != nil {
		return err
	}
	return app.Run(ctx, config.Complete())
}

func (c controllerManager) flags() []string {
	return []string{
		"--kubeconfig=" + c.kubeconfig,
		"--root-ca-file=" + c.ca,
		"--controllers=" + strings.Join(controllers(), ","),
		// The lock of the data directory proves already that there is one only.
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=200",
		"--kube-api-burst=400",
	}
}
