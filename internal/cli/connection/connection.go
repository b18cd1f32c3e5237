// Package connection connects commands to the cluster of a kubeconfig.
package connection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/xpkg-dev/xpkg/apis"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/internal/restmapper"
	"github.com/xpkg-dev/xpkg/internal/up"
	"github.com/xpkg-dev/xpkg/internal/up/datadir"
	"github.com/xpkg-dev/xpkg/internal/wording"
)

// ClusterFlags select the cluster of a command.
type ClusterFlags struct {
	Kubeconfig string   `placeholder:"FILE" help:"Kubeconfig file. Default is KUBECONFIG, then the control plane in XPKG_DATA_DIR, then ~/.kube/config, then the control plane of this machine."`
	Context    string   `placeholder:"NAME" complete:"context" help:"Context of the kubeconfig."`
	As         string   `placeholder:"USER" help:"User to impersonate, such as system:serviceaccount:NAMESPACE:NAME, as with kubectl."`
	AsGroup    []string `placeholder:"GROUP" help:"Groups to impersonate, together with --as."`
	// PlaneDir is the data directory of the control plane that a command works on. Commands
	// without a flag for it use XPKG_DATA_DIR.
	PlaneDir string `kong:"-"`
}

// Config returns the configuration of the cluster. It returns the error of ctx if ctx ends
// while a kubeconfig is read.
func (f ClusterFlags) Config(ctx context.Context) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.Kubeconfig
	if err := f.checkVariable(rules.Precedence); err != nil {
		return nil, err
	}
	if rules.ExplicitPath == "" {
		plane, err := f.localPlane(ctx, rules.Precedence)
		if err != nil {
			return nil, err
		}
		rules.ExplicitPath = plane
	}
	nowhere := rules.ExplicitPath == "" && !anyExists(rules.Precedence)
	cfg, err := fileutil.Await(ctx, clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		rules, &clientcmd.ConfigOverrides{CurrentContext: f.Context},
	).ClientConfig)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	// The messages of the library mention a variable that xpkg does not use.
	case clientcmd.IsEmptyConfig(err) && nowhere:
		return nil, ErrKubeconfig.New(nil, "no kubeconfig exists, and no control plane runs on this machine")
	case clientcmd.IsEmptyConfig(err):
		return nil, ErrKubeconfig.New(nil, "the kubeconfig contains no cluster")
	case err != nil:
		return nil, f.invalid(rules, err)
	}
	if len(f.AsGroup) > 0 && f.As == "" {
		return nil, terminal.ErrUsage.New(nil, "--as-group needs --as").WithDo("Name the user to impersonate with --as.")
	}
	if f.As != "" {
		cfg.Impersonate = rest.ImpersonationConfig{UserName: f.As, Groups: f.AsGroup}
	}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return localTransport{patientTransport{next}, rules.GetLoadingPrecedence()}
	})
	cfg.QPS = -1
	cfg.WarningHandler = rest.NoWarnings{}
	return cfg, nil
}

// localPlane returns the kubeconfig of a local control plane, or "" if another kubeconfig
// takes precedence or no control plane runs. It returns an error if no control plane runs in
// the data directory that the user selected, because the command must not use another
// cluster. It waits for a control plane that starts.
func (f ClusterFlags) localPlane(ctx context.Context, files []string) (string, error) {
	dir := cmp.Or(f.PlaneDir, os.Getenv(datadir.Variable))
	switch {
	case os.Getenv(clientcmd.RecommendedConfigPathEnvVar) != "", dir == "" && anyExists(files):
		return "", nil
	case dir == "":
		state, err := up.AwaitStart(ctx, datadir.Default())
		if err != nil {
			return "", ctx.Err() // The default directory can belong to another user or program.
		}
		return state.State.Kubeconfig, nil
	}
	state, err := up.AwaitStart(ctx, dir)
	if err == nil && !state.Ready {
		err = up.ErrNotRunning.New(nil, "no control plane is ready in %s", dir).
			WithDo("Run `%s`, or name another cluster with --kubeconfig.", datadir.StartCommand(state.DataDir, "--detach"))
	}
	return state.State.Kubeconfig, err
}

// invalid returns the error of a kubeconfig that cannot be used, with its path. The library's
// errors for invalid content contain Go types.
func (f ClusterFlags) invalid(rules *clientcmd.ClientConfigLoadingRules, err error) error {
	for _, file := range rules.GetLoadingPrecedence() {
		var path *fs.PathError
		_, failed := clientcmd.LoadFromFile(file)
		switch {
		case failed == nil || errors.Is(failed, fs.ErrNotExist):
			continue
		case errors.As(failed, &path):
			return ErrKubeconfig.New(path.Err, "cannot read the kubeconfig %s", file).
				WithDo("Name a readable file in --kubeconfig or KUBECONFIG.")
		}
		return ErrKubeconfig.New(nil, "%s is not a kubeconfig", file).
			WithDo("Name a kubeconfig in --kubeconfig or KUBECONFIG.")
	}
	if f.Context != "" {
		return ErrKubeconfig.New(err, "cannot use the kubeconfig").
			WithDo("List the contexts with `kubectl config get-contexts`.")
	}
	return ErrKubeconfig.New(err, "cannot load the kubeconfig")
}

// checkVariable returns an error if KUBECONFIG is set and none of its files exists, because
// the command must not use another cluster. Like kubectl, it accepts missing files in a list.
func (f ClusterFlags) checkVariable(files []string) error {
	named := os.Getenv(clientcmd.RecommendedConfigPathEnvVar)
	if f.Kubeconfig != "" || named == "" || anyExists(files) {
		return nil
	}
	do := "Correct KUBECONFIG, or run `unset KUBECONFIG` to use ~/.kube/config or the control plane of this machine."
	if state, err := up.Status(datadir.Default()); err == nil && state.Ready {
		do = fmt.Sprintf(
			"Correct KUBECONFIG. To use the control plane of this machine, run `export KUBECONFIG=%s`.",
			wording.ShellWord(state.State.Kubeconfig),
		)
	}
	if files = slices.DeleteFunc(slices.Clone(files), func(f string) bool { return f == "" }); len(files) > 1 {
		return ErrKubeconfig.New(nil, "KUBECONFIG is %s; none of these files exists", strings.Join(files, " and ")).
			WithDo("%s", do)
	}
	return ErrKubeconfig.New(nil, "KUBECONFIG is %s, which does not exist", named).WithDo("%s", do)
}

func anyExists(files []string) bool {
	for _, f := range files {
		if _, err := os.Stat(f); err == nil {
			return true
		}
	}
	return false
}

// Client returns a client for packages and the objects that plans read. It needs no discovery.
func (f ClusterFlags) Client(ctx context.Context) (client.WithWatch, error) {
	cfg, err := f.Config(ctx)
	if err != nil {
		return nil, err
	}
	return NewClient(cfg)
}

// NewClient returns a client as [ClusterFlags.Client] does, for a configuration.
func NewClient(cfg *rest.Config) (client.WithWatch, error) {
	scheme, err := apis.NewScheme()
	if err != nil {
		return nil, err
	}
	// Pull secrets, the policy for requested permissions, the Deployment of Crossplane, the bindings of ServiceAccounts
	// and the fence of consents are read for plans, and the name of the user for transactions.
	if err := errors.Join(
		admissionv1.AddToScheme(scheme), corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme), rbacv1.AddToScheme(scheme),
		authenticationv1.AddToScheme(scheme),
	); err != nil {
		return nil, err
	}
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, ErrKubeconfig.New(err, "cannot use the kubeconfig")
	}
	// Without a logger, controller-runtime writes a stack trace to standard error after 30 seconds. A command reports
	// its errors itself.
	log.SetLogger(logr.Discard())
	return client.NewWithWatch(cfg, client.Options{Scheme: scheme, Mapper: restmapper.New(scheme), HTTPClient: httpClient})
}
