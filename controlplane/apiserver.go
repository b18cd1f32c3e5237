package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/pflag"
	apiextensionsoptions "k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"

	"github.com/xpkg-dev/xpkg/controlplane/internal/pki"
)

const (
	serviceRange = "10.0.0.0/24"
	issuer       = "https://kubernetes.default.svc.cluster.local"
)

// serviceIP is the first address of serviceRange, which the API server takes for
// its own Service.
var serviceIP = net.IPv4(10, 0, 0, 1)

// An apiServer contains the settings of kube-apiserver.
type apiServer struct {
	listener   *net.TCPListener
	files      pki.Files
	crdOpenAPI bool
	// admission is the file of the configuration of admission, or empty.
	admission string
}

// run serves until the context is canceled. It replaces the command of kube-apiserver, which would install signal
// handlers and cannot use an open listener.
func (a apiServer) run(ctx context.Context) error {
	config, err := a.config(ctx)
	if err != nil {
		return err
	}
	completed, err := config.Complete()
	if err != nil {
		return err
	}
	chain, err := app.CreateServerChain(completed)
	if err != nil {
		return err
	}
	prepared, err := chain.PrepareRun()
	if err != nil {
		return err
	}
	return prepared.Run(ctx)
}

func (a apiServer) config(ctx context.Context) (*app.Config, error) {
	o, err := a.options(ctx)
	if err != nil {
		return nil, err
	}
	config, err := app.NewConfig(o)
	if err != nil {
		return nil, err
	}
	config.ApiExtensions.GenericConfig.SkipOpenAPIInstallation = !a.crdOpenAPI
	if err := readFromEtcd(config, *o.Etcd); err != nil {
		return nil, err
	}
	return config, nil
}

// readFromEtcd leaves out the cache that the API server puts before the database for each resource, except for that
// of CustomResourceDefinitions, which are large and watched by several components: without it, each of them would
// decode them again.
//
// The caches of built-in resources need a third of the processor time of an idle control plane. Those of custom
// resources, which are created at their first use, also do harm: until such a cache is filled, reads fail, and a
// definition that is deleted in that moment hangs, because its finalizer takes the failure for an event that it has
// seen already and looks again only after five minutes.
func readFromEtcd(config *app.Config, etcd genericoptions.EtcdOptions) error {
	builtIn, ok := config.KubeAPIs.ControlPlane.Generic.RESTOptionsGetter.(*genericoptions.StorageFactoryRestOptionsFactory)
	if !ok {
		return fmt.Errorf(
			"the options of the storage have the type %T", config.KubeAPIs.ControlPlane.Generic.RESTOptionsGetter,
		)
	}
	builtIn.Options.EnableWatchCache = false
	etcd.EnableWatchCache = false
	etcd.SkipHealthEndpoints = true
	generic := config.ApiExtensions.GenericConfig
	config.ApiExtensions.ExtraConfig.CRDRESTOptionsGetter = bookmarking{apiextensionsoptions.NewCRDRESTOptionsGetter(
		etcd, generic.ResourceTransformers, generic.StorageObjectCountTracker,
	)}
	config.KubeAPIs.ControlPlane.Generic.RESTOptionsGetter = bookmarking{builtIn}
	return nil
}

func (a apiServer) options(ctx context.Context) (options.CompletedOptions, error) {
	o := options.NewServerRunOptions()
	if err := parse(o.Flags(), a.flags()); err != nil {
		return options.CompletedOptions{}, err
	}
	o.SecureServing.Listener = a.listener
	// The controllers share these registries, so they are set once for both.
	registry := o.GenericServerRunOptions.ComponentGlobalsRegistry
	if err := registry.Set(); err != nil {
		return options.CompletedOptions{}, err
	}
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	completed, err := o.Complete(ctx)
	if err != nil {
		return options.CompletedOptions{}, err
	}
	return completed, utilerrors.NewAggregate(completed.Validate())
}

func (a apiServer) flags() []string {
	address := a.listener.Addr().(*net.TCPAddr)
	flags := []string{
		"--bind-address=" + address.IP.String(),
		"--advertise-address=" + address.IP.String(),
		"--secure-port=" + strconv.Itoa(address.Port),
		"--etcd-servers=" + etcdEndpoint,
		"--tls-cert-file=" + a.files.Server.Certificate,
		"--tls-private-key-file=" + a.files.Server.Key,
		"--client-ca-file=" + a.files.CA,
		"--service-account-issuer=" + issuer,
		"--service-account-key-file=" + a.files.ServiceAccounts,
		"--service-account-signing-key-file=" + a.files.ServiceAccounts,
		"--service-cluster-ip-range=" + serviceRange,
		"--authorization-mode=RBAC",
		"--allow-privileged=true",
		"--profiling=false",
		// There is no kube-proxy, so that the address of a Service leads nowhere:
		// webhooks are called where their endpoints are.
		"--enable-aggregator-routing=true",
		// There is one API server, so no list of servers is maintained.
		"--endpoint-reconciler-type=none",
		// Both need a controller that does not run here: nothing would compute the
		// status of a quota or take the taint off a new node, and both plugins
		// would refuse or hold up pods for ever.
		"--disable-admission-plugins=ResourceQuota,TaintNodesByCondition",
	}
	if a.admission != "" {
		flags = append(flags, "--admission-control-config-file="+a.admission)
	}
	return flags
}

// writeAdmission writes the configuration of admission that loads policies from a directory, and returns its path, or
// an empty one if there is no directory.
func writeAdmission(dataDir, policies string) (string, error) {
	if policies == "" {
		return "", nil
	}
	policies, err := filepath.Abs(policies)
	if err != nil {
		return "", err
	}
	path, err := filepath.Abs(filepath.Join(dataDir, "admission.json"))
	if err != nil {
		return "", err
	}
	const version = "apiserver.config.k8s.io/v1"
	content, err := json.Marshal(map[string]any{
		"apiVersion": version, "kind": "AdmissionConfiguration", "plugins": []any{map[string]any{
			"name": "ValidatingAdmissionPolicy", "configuration": map[string]any{
				"apiVersion": version, "kind": "ValidatingAdmissionPolicyConfiguration", "staticManifestsDir": policies,
			},
		}},
	})
	if err != nil {
		return "", err
	}
	return path, os.WriteFile(path, content, 0o600)
}

// parse reads arguments into the options of a component of Kubernetes.
func parse(sets cliflag.NamedFlagSets, args []string) error {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, set := range sets.FlagSets {
		flags.AddFlagSet(set)
	}
	return flags.Parse(args)
}
