package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/cronjob"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/endpoint"
	"k8s.io/kubernetes/pkg/controller/endpointslice"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/controller/ttlafterfinished"
)

// The settings of the controllers are the defaults of kube-controller-manager.
const (
	controllerWorkers   = 5
	namespaceWorkers    = 10
	namespaceResync     = 5 * time.Minute
	informerResync      = 12 * time.Hour
	endpointsPerSlice   = 100
	clientQPS           = 200
	clientBurst         = 400
	namespaceQPSFactor  = 20
	namespaceBurstRatio = 100
)

// A controllerManager runs the controllers of Kubernetes that packages need: they aggregate roles and create service accounts, pods and
// endpoints. It starts them itself, because the program kube-controller-manager imports all controllers, the scheduler and a part of the
// kubelet, which take a sixth of the time to build the control plane. The garbage collector is a separate component (see collector). The
// quota controller is excluded, because it watches every kind. The controller of token Secrets is excluded, because every runtime may
// create Secrets, and would get a token of every ServiceAccount. Tokens are requested from the API server.
type controllerManager struct{ kubeconfig, ca string }

// run runs the controllers until the context ends. The API server must be ready, and its options applied: the gates of features are
// shared.
func (m controllerManager) run(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", m.kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = clientQPS, clientBurst
	config.ContentConfig = rest.ContentConfig{
		ContentType:        runtime.ContentTypeProtobuf,
		AcceptContentTypes: runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON,
	}
	ca, err := os.ReadFile(m.ca)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(rest.CopyConfig(config), "shared-informers"))
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, informerResync, informers.WithTransform(dropManagedFields))

	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var start []func()
	for _, c := range controllers(factory, ca) {
		config := rest.AddUserAgent(rest.CopyConfig(config), c.name)
		ctx := klog.NewContext(ctx, klog.LoggerWithName(klog.FromContext(ctx), c.name))
		run, err := c.create(ctx, config)
		if err != nil {
			return fmt.Errorf("cannot create the controller %s: %w", c.name, err)
		}
		start = append(start, func() { run(ctx) })
	}
	// The informers that the controllers requested start before the controllers, which wait for them.
	factory.Start(ctx.Done())
	for _, run := range start {
		running.Go(run)
	}
	<-ctx.Done()
	running.Wait()
	factory.Shutdown()
	return nil
}

// A controller creates a controller of Kubernetes, with a client of its own, as a function that runs it until the context ends.
type controller struct {
	name   string
	create func(context.Context, *rest.Config) (func(context.Context), error)
}

// controllers returns the controllers, which read from the informers of factory. The CA is published to every namespace.
func controllers(factory informers.SharedInformerFactory, ca []byte) []controller {
	core, apps, batch := factory.Core().V1(), factory.Apps().V1(), factory.Batch().V1()
	return []controller{
		withClient("clusterrole-aggregation-controller", func(ctx context.Context, client kubernetes.Interface) (runner, int, error) {
			return clusterroleaggregation.NewClusterRoleAggregation(factory.Rbac().V1().ClusterRoles(), client.RbacV1()), controllerWorkers, nil
		}),
		withClient("cronjob-controller", func(ctx context.Context, client kubernetes.Interface) (runner, int, error) {
			c, err := cronjob.NewControllerV2(ctx, batch.Jobs(), batch.CronJobs(), client)
			return c, controllerWorkers, err
		}),
		withClient("deployment-controller", func(ctx context.Context, client kubernetes.Interface) (runner, int, error) {
			c, err := deployment.NewDeploymentController(ctx, apps.Deployments(), apps.ReplicaSets(), core.Pods(), client)
			return c, controllerWorkers, err
		}),
		withClient("endpointslice-controller", func(ctx context.Context, client kubernetes.Interface) (runner, int, error) {
			slices := factory.Discovery().V1().EndpointSlices()
			return endpointslice.NewController(ctx, core.Pods(), core.Services(), core.Nodes(), slices, endpointsPerSlice, client, 0), controllerWorkers, nil
		}),
		withClient("endpoint-controller", func(ctx context.Context, client kubernetes.Interface) (runner, int, error) {
			return endpoint.NewEndpointController(ctx, core.Pods(), core.Services(), core.Endpoints(), client, 0), controllerWorkers, nil
		}),
		withClient("job-controller", func(ctx context.Context, client kubernetes.Interface) (runner, int, error) {
			c, err := job.NewController(ctx, client, core.Pods(), batch.Jobs(), nil, nil)
			return c, controllerWorkers, err
		}),
		{"namespace-controller", func(ctx context.Context, config *rest.Config) (func(context.Context), error) {
			// It sends many requests for discovery and deletion.
			config.QPS *= namespaceQPSFactor
			config.Burst *= namespaceBurstRatio
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				return nil, err
			}
			objects, err := metadata.NewForConfig(config)
			if err != nil {
				return nil, err
			}
			c := namespace.NewNamespaceController(ctx, client, objects, client.Discovery().ServerPreferredNamespacedResources, core.Namespaces(), namespaceResync, corev1.FinalizerKubernetes)
			return func(ctx context.Context) { c.Run(ctx, namespaceWorkers) }, nil
		}},
		withClient("replicaset-controller", func(ctx context.Context, client kubernetes.Interface) (runner, int, error) {
			return replicaset.NewReplicaSetController(ctx, apps.ReplicaSets(), core.Pods(), client, replicaset.BurstReplicas), controllerWorkers, nil
		}),
		withClient("root-ca-cert-publisher", func(ctx context.Context, client kubernetes.Interface) (runner, int, error) {
			c, err := rootcacertpublisher.NewPublisher(core.ConfigMaps(), core.Namespaces(), client, ca)
			return c, 1, err
		}),
		withClient("service-account-controller", func(ctx context.Context, client kubernetes.Interface) (runner, int, error) {
			c, err := serviceaccount.NewServiceAccountsController(klog.FromContext(ctx), core.ServiceAccounts(), core.Namespaces(), client, serviceaccount.DefaultServiceAccountsControllerOptions())
			return c, 1, err
		}),
		withClient("ttl-after-finished-controller", func(ctx context.Context, client kubernetes.Interface) (runner, int, error) {
			return ttlafterfinished.New(ctx, batch.Jobs(), client), controllerWorkers, nil
		}),
	}
}

// A runner is a controller of Kubernetes.
type runner interface {
	Run(ctx context.Context, workers int)
}

// withClient returns a controller that needs a client only. The number that create returns is that of its workers.
func withClient(name string, create func(context.Context, kubernetes.Interface) (runner, int, error)) controller {
	return controller{name, func(ctx context.Context, config *rest.Config) (func(context.Context), error) {
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		c, workers, err := create(ctx, client)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) { c.Run(ctx, workers) }, nil
	}}
}
