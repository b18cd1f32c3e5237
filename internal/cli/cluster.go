package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/spelling"
	"github.com/xpkg-dev/xpkg/internal/up"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Failures of talking to a cluster.
var (
	ErrKubeconfig = errcode.Code{
		Name: "Kubeconfig", Class: errcode.Usage,
		Cause: "There is no kubeconfig, or it does not name a cluster that can be used.",
		Fix:   "Name one with --kubeconfig or KUBECONFIG, or start a control plane on this machine with `xpkg up`.",
	}
	ErrCluster = errcode.Code{
		Name: "ClusterUnavailable", Class: errcode.Unavailable,
		Cause: "The cluster of the kubeconfig does not answer.",
		Fix:   "Check that the cluster runs and that the kubeconfig and its context are the right ones.",
	}
	ErrNoPackageAPI = errcode.Code{
		Name: "NoPackageAPI", Class: errcode.NotFound,
		Cause: "The cluster does not serve pkg.crossplane.io: no package manager runs in it.",
		Fix:   "Start one with `xpkg manager --kubeconfig FILE`, or use a control plane of `xpkg up`.",
	}
	ErrPackageNotFound = errcode.Code{
		Name: "PackageNotFound", Class: errcode.NotFound,
		Cause: "No package of that name is installed.",
		Fix:   "See what is installed with `xpkg list`.",
	}
	ErrAmbiguous = errcode.Code{
		Name: "AmbiguousName", Class: errcode.Usage,
		Cause: "Packages of several kinds have that name.",
		Fix:   "Put the kind before the name, for example provider/NAME.",
	}
)

// clusterFlags name the cluster that a command works on.
type clusterFlags struct {
	Kubeconfig string `placeholder:"FILE" help:"Kubeconfig file. Default is KUBECONFIG, then ~/.kube/config, then the control plane of this machine."`
	Context    string `placeholder:"NAME" help:"Context of the kubeconfig."`
}

// config finds the cluster.
func (f clusterFlags) config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.Kubeconfig
	if err := f.checkVariable(rules.Precedence); err != nil {
		return nil, err
	}
	nowhere := f.Kubeconfig == "" && !anyExists(rules.Precedence)
	if nowhere {
		if state, err := up.Status(up.DefaultDataDir()); err == nil && state.Running {
			rules.ExplicitPath = state.State.Kubeconfig
		}
	}
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: f.Context}).ClientConfig()
	switch {
	// What the library says of these asks for a variable that xpkg does not read.
	case clientcmd.IsEmptyConfig(err) && nowhere:
		return nil, ErrKubeconfig.New(nil, "there is no kubeconfig, and no control plane runs on this machine")
	case clientcmd.IsEmptyConfig(err):
		return nil, ErrKubeconfig.New(nil, "the kubeconfig names no cluster")
	case err != nil:
		return nil, ErrKubeconfig.New(err, "cannot tell which cluster to use")
	}
	cfg.QPS = -1
	cfg.WarningHandler = rest.NoWarnings{}
	return cfg, nil
}

// checkVariable fails if KUBECONFIG is set and none of its files exists: the user means
// a certain cluster, and no command may work on another one. As kubectl does, it accepts
// a list of which some files are missing.
func (f clusterFlags) checkVariable(files []string) error {
	named := os.Getenv(clientcmd.RecommendedConfigPathEnvVar)
	if f.Kubeconfig != "" || named == "" || anyExists(files) {
		return nil
	}
	do := "Correct KUBECONFIG, or run `unset KUBECONFIG` to use ~/.kube/config or the control plane of this machine."
	if state, err := up.Status(up.DefaultDataDir()); err == nil && state.Ready {
		do = fmt.Sprintf("Correct KUBECONFIG. To use the control plane of this machine, run `export KUBECONFIG=%s`.", wording.ShellWord(state.State.Kubeconfig))
	}
	if files = slices.DeleteFunc(slices.Clone(files), func(f string) bool { return f == "" }); len(files) > 1 {
		return ErrKubeconfig.New(nil, "KUBECONFIG names %s, and none of them exists", strings.Join(files, " and ")).WithDo("%s", do)
	}
	return ErrKubeconfig.New(nil, "KUBECONFIG names %s, which does not exist", named).WithDo("%s", do)
}

func anyExists(files []string) bool {
	for _, f := range files {
		if _, err := os.Stat(f); err == nil {
			return true
		}
	}
	return false
}

// client makes a client that knows the kinds of packages without asking the
// cluster, so that a command costs no discovery.
func (f clusterFlags) client() (client.Client, error) {
	cfg, err := f.config()
	if err != nil {
		return nil, err
	}
	scheme, err := apis.NewScheme()
	if err != nil {
		return nil, err
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for gvk := range scheme.AllKnownTypes() {
		if gvk.Group == v1.Group {
			mapper.Add(gvk, meta.RESTScopeRoot)
		}
	}
	// Pull secrets, the ceiling over permissions and the Deployment of Crossplane are
	// read for plans.
	if err := errors.Join(corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), meta.RESTScopeNamespace)
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, ErrKubeconfig.New(err, "cannot use the kubeconfig")
	}
	return client.New(cfg, client.Options{Scheme: scheme, Mapper: mapper, HTTPClient: httpClient})
}

// classify turns an error of the client into a failure.
func classify(err error, what string, args ...any) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return err
	case meta.IsNoMatchError(err), isNotServed(err):
		return ErrNoPackageAPI.New(err, what, args...)
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return apply.ErrForbidden.New(err, what, args...)
	case apierrors.IsInvalid(err):
		return ErrRefusedByServer.New(err, what, args...)
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return fmt.Errorf(what+": %w", append(args, err)...)
	}
	return ErrCluster.New(err, what, args...)
}

// ErrRefusedByServer is the failure of an object that the API server refuses.
var ErrRefusedByServer = errcode.Code{
	Name: "InvalidObject", Class: errcode.Invalid,
	Cause: "The API server refused the object that the command made.",
	Fix:   "Correct what the message names.",
}

// isNotServed tells the 404 of an unknown path from that of an unknown object.
func isNotServed(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && apierrors.IsNotFound(err) &&
		(status.Status().Details == nil || status.Status().Details.Name == "")
}

// installed is everything that is installed.
type installed struct {
	packages []v1.Package
	lock     *v1beta1.Lock
	// place tells where a repository is really read.
	place func(repository string) string
}

// installed reads what is installed in the cluster, with load or loadNamed.
func (f clusterFlags) installed(ctx context.Context, read func(context.Context, client.Client) (*installed, error)) (client.Client, *installed, error) {
	cluster, err := f.client()
	if err != nil {
		return nil, nil, err
	}
	all, err := read(ctx, cluster)
	return cluster, all, err
}

// load reads all packages and the Lock.
func load(ctx context.Context, c client.Client) (*installed, error) {
	out, err := loadPackages(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := c.Get(ctx, client.ObjectKey{Name: v1beta1.LockName}, out.lock); client.IgnoreNotFound(err) != nil {
		return nil, classify(err, "read the lock")
	}
	return out, nil
}

// loadPackages reads all packages, for those who need no more and may read no more.
func loadPackages(ctx context.Context, c client.Client) (*installed, error) {
	out := &installed{lock: &v1beta1.Lock{}}
	for _, kind := range v1.PackageKinds() {
		list := v1.NewPackageList(kind)
		if err := c.List(ctx, list); err != nil {
			return nil, classify(err, "list %ss", strings.ToLower(kind))
		}
		for _, p := range list.Packages() {
			p.GetObjectKind().SetGroupVersionKind(v1.GroupVersion.WithKind(kind))
			out.packages = append(out.packages, p)
		}
	}
	return out, nil
}

// find gives the one package with a name, which can be written KIND/NAME.
func (i *installed) find(name string) (v1.Package, error) {
	kind := ""
	if k, n, ok := strings.Cut(name, "/"); ok {
		kind, name = k, n
	}
	var found []v1.Package
	for _, p := range i.packages {
		if p.GetName() == name && (kind == "" || kindOf(kind) == p.PackageKind()) {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 0:
		return nil, i.absent("package", name)
	case 1:
		return found[0], nil
	}
	return nil, ErrAmbiguous.New(nil, "%d packages are named %s", len(found), name)
}

// absent says that nothing of a name is installed, and what may have been meant: names
// that are spelled alike, or the whole of which it is a part.
func (i *installed) absent(what, name string) error {
	var alike, names []string
	for _, p := range i.packages {
		if strings.Contains(p.GetName(), name) {
			alike = append(alike, p.GetName())
		}
		names = append(names, p.GetName())
	}
	alike = append(alike, spelling.Alike(name, names)...)
	var meant []string
	for _, p := range i.packages {
		if slices.Contains(alike, p.GetName()) {
			meant = append(meant, shortName(p))
		}
	}
	f := ErrPackageNotFound.New(nil, "no %s %s is installed", what, name)
	if len(meant) == 0 {
		return f
	}
	return f.WithDo("Did you mean %s? %s", strings.Join(meant[:min(3, len(meant))], " or "), ErrPackageNotFound.Fix)
}

// kindOf gives the kind that a user means by "provider", "Provider" or
// "providers", or nothing.
func kindOf(word string) string {
	for _, kind := range v1.PackageKinds() {
		if strings.EqualFold(word, kind) || strings.EqualFold(word, kind+"s") {
			return kind
		}
	}
	return ""
}
