package revisions

import (
	"cmp"
	"context"
	"errors"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/certificates"
	"github.com/xpkg-dev/xpkg/internal/controller/runtimes"
	"github.com/xpkg-dev/xpkg/internal/imageconfig"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/pkg/firstgen"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/runtimedefaults"
)

// Runtimes holds what a Reconciler needs to run the runtimes of packages.
type Runtimes struct {
	*runtimes.Set
	Certificates *certificates.Store
	// Prober proves that the endpoints of webhooks serve.
	Prober webhooks.Prober
	// SettleTime is the time that a runtime must run before it is available. Zero means the default of
	// the runtime.
	SettleTime time.Duration
}

// workload is the description of the runtime of a revision, and the kind of runtime that runs it.
type workload struct {
	runtime runtime.Runtime
	spec    runtime.Workload
}

// serviceAccounts returns the ServiceAccount that a runtime runs as, or nil if it has none.
func (w *workload) serviceAccounts() ([]rbacv1.Subject, error) {
	if w == nil {
		return nil, nil
	}
	name, err := w.runtime.ServiceAccount(w.spec)
	if err != nil || name == "" {
		return nil, err
	}
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.spec.Namespace, Name: name}}, nil
}

// runtimeError marks a failure of the runtime, which leaves the objects of the revision healthy.
type runtimeError struct{ error }

func (e runtimeError) Unwrap() error { return e.error }

func asRuntimeError(err error) error {
	if err == nil {
		return nil
	}
	return runtimeError{err}
}

func isRuntimeError(err error) bool {
	var is runtimeError
	return errors.As(err, &is)
}

// prepareRuntime describes the runtime of a revision and obtains its image. It starts nothing. A package
// without a runtime, or whose runtime the manager does not run, has no workload.
func (r *Reconciler) prepareRuntime(ctx context.Context, in *reconciliation) error {
	name, defaults, err := r.Runtimes.Choice.Select(in.Package, in.pkg.Meta)
	by := r.Runtimes.ByName[name]
	if err != nil || by == nil {
		return asRuntimeError(err)
	}
	p, err := r.describeRuntime(ctx, in, defaults)
	if err != nil {
		return asRuntimeError(err)
	}
	p.AwaitingActivation, p.Restart = awaitsActivation(in), revision.Deactivated(in.Revision)
	p.ExplainsExit = in.kinds != nil && in.kinds.Selective
	if err := r.obtainImage(ctx, in.Revision, by, p); err != nil {
		return asRuntimeError(r.Runtimes.Choice.AdviseWithoutRuntime(err, r.Kind, in.Package.GetName()))
	}
	in.workload = &workload{by, p}
	return nil
}

// obtainImage obtains the image of a runtime. It reports an image that the status does not name yet
// as progress, because fetching it may take long.
func (r *Reconciler) obtainImage(
	ctx context.Context, rev v1.PackageRevision, by runtime.Runtime, p runtime.Workload,
) error {
	status := rev.RuntimeStatus()
	if status.RuntimeImage == p.Image() {
		return by.Obtain(ctx, p)
	}
	r.API.Status.SetProgressing(ctx, rev, "Fetching the runtime image "+p.Image()+".")
	if err := by.Obtain(ctx, p); err != nil {
		return err
	}
	status.RuntimeImage = p.Image()
	return nil
}

// describeRuntime returns the workload of a revision, with its runtime configuration over the defaults of the
// package, and its resolved image.
func (r *Reconciler) describeRuntime(
	ctx context.Context, in *reconciliation, defaults *runtimedefaults.Defaults,
) (runtime.Workload, error) {
	source := in.source
	config, err := runtime.Config(ctx, r.API.Client, in.Revision, source.Route.Runtime)
	if err != nil {
		return runtime.Workload{}, err
	}
	config = manifests.WithDefaults(config, defaults)
	spec := in.Revision.RuntimeSpec()
	p := runtime.Workload{
		Owner: in.Requester(), Namespace: r.Packages.Namespace, Config: config, Settle: r.Runtimes.SettleTime,
		External: r.runsExternally(in), PullPolicy: in.Revision.RevisionSpec().PackagePullPolicy,
		ServerSecret: value(spec.TLSServerSecretName), ClientSecret: value(spec.TLSClientSecretName),
	}
	image := cmp.Or(manifests.ConfiguredImage(config), in.pkg.Meta.ControllerImage)
	p.OfPackage = image == ""
	if !p.OfPackage {
		registry := defaultRuntimeRegistry
		if manifests.ConfiguredImage(config) == "" && defaults != nil && defaults.ImageInPackageRegistry {
			registry = packageRegistry(in.Revision)
			image = firstgen.WithRegistry(image, in.Package.GetAnnotations()[revision.AnnotationImageSource])
		}
		if source, err = r.resolveRuntimeImage(ctx, in, image, registry); err != nil {
			return runtime.Workload{}, err
		}
		p.Config = manifests.WithoutImage(config)
	}
	p.Origin, p.Digest, p.PullSecrets = source.Origin, source.Digest, lastPullSecrets(source.Route)
	return p, nil
}

// defaultRuntimeRegistry is the registry of an image that names none, as with container engines.
const defaultRuntimeRegistry = "docker.io"

// packageRegistry returns the registry of the package of a revision, before rewriting.
func packageRegistry(rev v1.PackageRevision) string {
	ref, err := oci.ParseReference(rev.RevisionSpec().Image, oci.ParseOptions{})
	if err != nil {
		return defaultRuntimeRegistry
	}
	return ref.Registry
}

// resolveRuntimeImage resolves a runtime image that is not the image of the package, in a registry unless the image
// names one. A tag is resolved once: the digest stays the same as long as the same image is requested.
//
// The image of an external runtime has no digest if the manager cannot read it: another system fetches it, possibly
// with credentials of its own or from the machine on which it runs. An image whose signature is required is
// always read.
func (r *Reconciler) resolveRuntimeImage(
	ctx context.Context, in *reconciliation, image, registry string,
) (state.Source, error) {
	ref, err := oci.ParseReference(image, oci.ParseOptions{DefaultRegistry: registry, AllowUntagged: true})
	if err != nil {
		return state.Source{}, err
	}
	if ref.Tag == "" && ref.Digest.IsZero() {
		ref = ref.WithTag("latest")
	}
	spec := in.Revision.RevisionSpec()
	origin, route, err := r.Packages.Origins.Locate(ctx, ref.String(), spec.PackagePullSecrets, "")
	if err != nil {
		return state.Source{}, err
	}
	digest, known := recordedRuntimeImage(in.Revision, origin.Ref)
	if !known {
		digest, err = r.Packages.Content.Resolve(ctx, origin, 0)
	}
	if r.runsExternally(in) && runtime.IsUnreadable(err) && origin.Signed == nil {
		err = nil
	}
	if err == nil {
		_, err = r.Packages.Content.Verify(ctx, origin, digest, revision.MayPull(spec.PackagePullPolicy))
	}
	return state.Source{Origin: origin, Digest: digest, Route: route}, err
}

// runsExternally reports whether another system runs the runtime of a package.
func (r *Reconciler) runsExternally(in *reconciliation) bool {
	return r.Runtimes.Choice.Of(r.Kind, in.Package.GetName()) == runtime.External
}

// recordedRuntimeImage returns the digest of an image that the status records, and false if it
// records none.
func recordedRuntimeImage(rev v1.PackageRevision, image oci.Reference) (oci.Digest, bool) {
	recorded, err := oci.ParseReference(rev.RuntimeStatus().RuntimeImage, oci.ParseOptions{})
	same := err == nil && image.Digest.IsZero() && !recorded.Digest.IsZero() &&
		recorded == image.WithDigest(recorded.Digest)
	return recorded.Digest, same
}

// lastPullSecrets returns the pull secrets of the image itself, which is the last source, after its
// mirrors.
func lastPullSecrets(r imageconfig.Route) []string {
	if len(r.Sources) == 0 {
		return nil
	}
	return r.Sources[len(r.Sources)-1].PullSecrets
}

// value returns the value of a pointer, or the zero value.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
