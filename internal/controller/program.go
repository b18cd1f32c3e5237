package controller

import (
	"cmp"
	"context"
	"errors"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/imageconfig"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// job is the program of a revision, and who runs it.
type job struct {
	runtime runtime.Runtime
	program runtime.Program
}

// programError marks a failure of the program's, so that the objects of the revision
// are not called unhealthy for it.
type programError struct{ error }

func (e programError) Unwrap() error { return e.error }

func failedProgram(err error) error {
	if err == nil {
		return nil
	}
	return programError{err}
}

func ofProgram(err error) bool {
	var is programError
	return errors.As(err, &is)
}

// prepare describes the program of a revision and has its image at hand. Nothing runs
// because of it. It gives nothing where nobody runs the program.
func (r *revisionReconciler) prepare(ctx context.Context, f family, meta xpkg.Meta, objects *desired.Objects, source state.Source) (*job, error) {
	by := r.programs.of(r.kind, f.pkg.GetName())
	if by == nil {
		return nil, nil
	}
	p, err := r.program(ctx, f, meta, source)
	if err != nil {
		return nil, failedProgram(err)
	}
	if p.AwaitingActivation, err = r.awaits(ctx, f.rev, meta, objects); err != nil {
		return nil, failedProgram(err)
	}
	if err := r.fetch(ctx, f.rev, by, p); err != nil {
		return nil, failedProgram(err)
	}
	return &job{by, p}, nil
}

// fetch obtains the image, and says so when that may take its time.
func (r *revisionReconciler) fetch(ctx context.Context, rev v1.PackageRevision, by runtime.Runtime, p runtime.Program) error {
	status := rev.RuntimeStatus()
	if status.ProgramImage == p.Image() {
		return by.Obtain(ctx, p)
	}
	r.say(ctx, rev, "Fetching the image "+p.Image()+" of the program.")
	if err := by.Obtain(ctx, p); err != nil {
		return err
	}
	status.ProgramImage = p.Image()
	return nil
}

// program describes the program of a revision.
func (r *revisionReconciler) program(ctx context.Context, f family, meta xpkg.Meta, source state.Source) (runtime.Program, error) {
	config, err := r.runtimeConfig(ctx, f.rev, source.Route.Runtime)
	if err != nil {
		return runtime.Program{}, err
	}
	spec := f.rev.RuntimeSpec()
	p := runtime.Program{
		Owner: f.requester(), Namespace: r.namespace, Config: config, Settle: r.settleTime, PullPolicy: f.rev.RevisionSpec().PackagePullPolicy,
		ServerSecret: value(spec.TLSServerSecretName), ClientSecret: value(spec.TLSClientSecretName),
	}
	image := cmp.Or(manifests.ConfiguredImage(config), meta.ControllerImage)
	p.OfPackage = image == ""
	if !p.OfPackage {
		if source, err = r.pinProgram(ctx, f.rev, image); err != nil {
			return runtime.Program{}, err
		}
		p.Config = manifests.WithoutImage(config)
	}
	p.Origin, p.Digest, p.PullSecrets = source.Origin, source.Digest, lastSecrets(source.Route)
	return p, nil
}

// programRegistry is where an image is that names no registry, as it is for
// container engines.
const programRegistry = "docker.io"

// pinProgram finds an image that is not that of the package. A tag is asked for once:
// what it was resolved to holds for as long as the same image is asked for.
func (r *revisionReconciler) pinProgram(ctx context.Context, rev v1.PackageRevision, image string) (state.Source, error) {
	ref, err := oci.ParseReference(image, oci.ParseOptions{DefaultRegistry: programRegistry, AllowUntagged: true})
	if err != nil {
		return state.Source{}, err
	}
	if ref.Tag == "" && ref.Digest.IsZero() {
		ref = ref.WithTag("latest")
	}
	spec := rev.RevisionSpec()
	origin, route, err := r.origins.Locate(ctx, ref.String(), spec.PackagePullSecrets, "")
	if err != nil {
		return state.Source{}, err
	}
	digest, known := recordedProgram(rev, origin.Ref)
	if !known {
		digest, err = r.content.Resolve(ctx, origin, 0)
	}
	return state.Source{Origin: origin, Digest: digest, Route: route}, err
}

// recordedProgram is what the same image was resolved to before.
func recordedProgram(rev v1.PackageRevision, image oci.Reference) (oci.Digest, bool) {
	recorded, err := oci.ParseReference(rev.RuntimeStatus().ProgramImage, oci.ParseOptions{})
	same := err == nil && image.Digest.IsZero() && recorded == image.WithDigest(recorded.Digest)
	return recorded.Digest, same
}

// lastSecrets are the pull secrets for the image itself, after its mirrors.
func lastSecrets(r imageconfig.Route) []string {
	if len(r.Sources) == 0 {
		return nil
	}
	return r.Sources[len(r.Sources)-1].PullSecrets
}

// value is what a pointer points to, or the zero value.
func value[T any](p *T) T {
	if p == nil {
		var none T
		return none
	}
	return *p
}
