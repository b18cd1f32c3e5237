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
	namespaceResync   = 5 * time.Minute
	informerResync    = 12 * time.Hour
	endpointsPerSlice = 100
	clientQPS         = 200
	clientBurst       = 400
)

// A controllerManager runs the controllers of Kubernetes that packages need: they aggregate roles and create service
// accounts, pods and endpoints. It starts them itself, because the program kube-controller-manager imports all
// controllers, the scheduler and a part of the kubelet, which take a sixth of the time to build the control plane. The
// garbage collector is a separate component (see collector). The quota controller is excluded, because it watches every
// kind. The controller of token Secrets is excluded, because every runtime may create Secrets, and would get a token of
// every ServiceAccount. Tokens are requested from the API server.
type controllerManager struct{ kubeconfig, ca string }

// run runs the controllers until the context ends. The API server must be ready, and its options applied: the gates of
// features are shared.
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
	factory := informers.NewSharedInformerFactoryWithOptions(
		client, informerResync, informers.WithTransform(dropManagedFields),
	)

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var start []func()
	for _, c := range controllers(factory, ca) {
		ctx := klog.NewContext(ctx, klog.LoggerWithName(klog.FromContext(ctx), c.name))
		r, err := c.create(ctx, rest.AddUserAgent(rest.CopyConfig(config), c.name))
		if err != nil {
			return fmt.Errorf("cannot create the controller %s: %w", c.name, err)
		}
		start = append(start, func() { r.Run(ctx, c.workers) })
	}
	// The informers that the controllers requested start before the controllers, which wait for them.
	factory.Start(ctx.Done())
	var running sync.WaitGroup
	for _, run := range start {
		running.Go(run)
	}
	running.Wait()
	factory.Shutdown()
	return nil
}

// A controller is a controller of Kubernetes with the number of its workers. Create creates it with a client of its
// own.
type controller struct {
	name    string
	workers int
	create  func(context.Context, *rest.Config) (runner, error)
}

// A runner runs a controller until the context ends.
type runner interface {
	Run(ctx context.Context, workers int)
}

// controllers returns the controllers, which read from the informers of factory. The CA is published to every
// namespace.
func controllers(factory informers.SharedInformerFactory, ca []byte) []controller {
	core, apps, batch := factory.Core().V1(), factory.Apps().V1(), factory.Batch().V1()
	return []controller{
		{"clusterrole-aggregation-controller", 5, withClient(func(
			_ context.Context, client kubernetes.Interface,
		) (runner, error) {
			return clusterroleaggregation.NewClusterRoleAggregation(factory.Rbac().V1().ClusterRoles(), client.RbacV1()), nil
		})},
		{"cronjob-controller", 5, withClient(func(ctx context.Context, client kubernetes.Interface) (runner, error) {
			return cronjob.NewControllerV2(ctx, batch.Jobs(), batch.CronJobs(), client)
		})},
		{"deployment-controller", 5, withClient(func(ctx context.Context, client kubernetes.Interface) (runner, error) {
			return deployment.NewDeploymentController(ctx, apps.Deployments(), apps.ReplicaSets(), core.Pods(), client)
		})},
		{"endpointslice-controller", 5, withClient(func(ctx context.Context, client kubernetes.Interface) (runner, error) {
			slices := factory.Discovery().V1().EndpointSlices()
			return endpointslice.NewController(
				ctx, core.Pods(), core.Services(), core.Nodes(), slices, endpointsPerSlice, client, 0,
			), nil
		})},
		{"endpoint-controller", 5, withClient(func(ctx context.Context, client kubernetes.Interface) (runner, error) {
			return endpoint.NewEndpointController(ctx, core.Pods(), core.Services(), core.Endpoints(), client, 0), nil
		})},
		{"job-controller", 5, withClient(func(ctx context.Context, client kubernetes.Interface) (runner, error) {
			return job.NewController(ctx, client, core.Pods(), batch.Jobs(), nil, nil)
		})},
		{"namespace-controller", 10, func(ctx context.Context, config *rest.Config) (runner, error) {
			// It sends many requests for discovery and deletion.
			config.QPS *= 20
			config.Burst *= 100
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				return nil, err
			}
			objects, err := metadata.NewForConfig(config)
			if err != nil {
				return nil, err
			}
			resources := client.Discovery().ServerPreferredNamespacedResources
			return namespace.NewNamespaceController(
				ctx, client, objects, resources, core.Namespaces(), namespaceResync, corev1.FinalizerKubernetes,
			), nil
		}},
		{"replicaset-controller", 5, withClient(func(ctx context.Context, client kubernetes.Interface) (runner, error) {
			return replicaset.NewReplicaSetController(ctx, apps.ReplicaSets(), core.Pods(), client, replicaset.BurstReplicas),
				nil
		})},
		{"root-ca-cert-publisher", 1, withClient(func(_ context.Context, client kubernetes.Interface) (runner, error) {
			return rootcacertpublisher.NewPublisher(core.ConfigMaps(), core.Namespaces(), client, ca)
		})},
		{"service-account-controller", 1, withClient(func(ctx context.Context, client kubernetes.Interface) (runner, error) {
			options := serviceaccount.DefaultServiceAccountsControllerOptions()
			return serviceaccount.NewServiceAccountsController(
				klog.FromContext(ctx), core.ServiceAccounts(), core.Namespaces(), client, options,
			)
		})},
		{"ttl-after-finished-controller", 5, withClient(func(
			ctx context.Context, client kubernetes.Interface,
		) (runner, error) {
			return ttlafterfinished.New(ctx, batch.Jobs(), client), nil
		})},
	}
}

// withClient adapts the creation of a controller that needs a typed client only.
func withClient(create func(context.Context, kubernetes.Interface) (runner, error)) func(
	context.Context, *rest.Config,
) (runner, error) {
	return func(ctx context.Context, config *rest.Config) (runner, error) {
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		return create(ctx, client)
	}
}
