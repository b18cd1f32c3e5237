package deployment

import (
	"cmp"
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Images resolves the images of runtimes.
type Images interface {
	// Exists fails unless the image with a digest exists and can be pulled.
	Exists(ctx context.Context, o fetch.Origin, d oci.Digest) error
}

// defaultSettle is the time that a pod must be ready before its runtime is available. It
// is longer than most runtimes take to detect that they cannot start.
const defaultSettle = 10 * time.Second

// rolloutPoll is the interval at which the pods of a Deployment are inspected while it is
// available and rolls out a change.
const rolloutPoll = 5 * time.Second

// PackageRuntime runs package runtimes as Deployments. It implements [runtime.Runtime].
type PackageRuntime struct {
	*Runtime
	Images Images
}

var _ runtime.Runtime = PackageRuntime{}

// Manifests returns the objects of a runtime that runs as a Deployment.
func Manifests(program runtime.Workload) (manifests.Objects, error) {
	program.Settle = cmp.Or(program.Settle, defaultSettle)
	return runtime.Manifests(program)
}

// Obtain checks that the runtime uses only allowed privileges, that the API server accepts its objects, and that its
// image can be pulled. It does not check the image of the package, which was already fetched, nor an image with the
// pull policy Never, which the nodes must provide.
func (p PackageRuntime) Obtain(ctx context.Context, program runtime.Workload) error {
	objects, err := Manifests(program)
	if err != nil {
		return err
	}
	if err := cmp.Or(
		objects.CheckPrivileges(p.Privileges), p.CheckServiceAccount(ctx, objects), objects.CheckMetadata(),
	); err != nil {
		return err
	}
	if err := p.CheckAccepted(ctx, objects); err != nil {
		return err
	}
	if program.OfPackage || program.PullPolicy == corev1.PullNever {
		return nil
	}
	return p.Images.Exists(ctx, program.Origin, program.Digest)
}

// ServiceAccount implements [runtime.Runtime].
func (PackageRuntime) ServiceAccount(program runtime.Workload) (string, error) {
	return runtime.AccountName(program)
}

// Run implements [runtime.Runtime].
func (p PackageRuntime) Run(ctx context.Context, program runtime.Workload) (runtime.State, error) {
	objects, err := Manifests(program)
	if err != nil {
		return runtime.State{}, err
	}
	if err := objects.CheckPrivileges(p.Privileges); err != nil {
		return runtime.State{}, err
	}
	state, err := p.Ensure(ctx, objects)
	state.Endpoint = objects.Endpoint
	if state.RollingOut {
		state.Again = rolloutPoll
	}
	return state, err
}

// Others returns the revisions of the package that have a Deployment. If the requesting
// revision has none yet, because it is the first or is about to take over, Others reads
// from the API server: the Deployments of the other revisions, and the remaining pods of
// any revision.
func (p PackageRuntime) Others(ctx context.Context, who plan.Requester) ([]plan.Owner, error) {
	found, err := p.running(ctx, who)
	if err != nil || slices.Contains(found, who.Revision.Name) || who.Revision.Name == "" {
		return others(who, found), err
	}
	for _, name := range who.Siblings {
		d := &appsv1.Deployment{}
		err := p.Client.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: name}, d)
		if client.IgnoreNotFound(err) != nil {
			return nil, classify(err, "read", d)
		}
		if c := holderOf(d); !apierrors.IsNotFound(err) && c != nil && who.IsSibling(*c) {
			found = append(found, c.Name)
		}
	}
	pods, err := p.podsOfPackage(ctx, who)
	return others(who, append(found, pods...)), err
}

// running returns the names of the revisions of a package that have a Deployment in the cache.
func (p PackageRuntime) running(ctx context.Context, who plan.Requester) ([]string, error) {
	var all appsv1.DeploymentList
	if err := p.Client.List(ctx, &all, client.InNamespace(p.Namespace)); err != nil {
		return nil, apply.ErrServer.New(err, "list the Deployments of %s", p.Namespace)
	}
	var out []string
	revision := plan.Owner{APIVersion: who.Package.APIVersion, Kind: v1.RevisionKind(who.Package.Kind)}
	for i := range all.Items {
		d := &all.Items[i]
		c := holderOf(d)
		if c != nil && revision.IsOfKind(*c) && d.Spec.Template.Labels[packageLabel(who)] == who.Package.Name {
			out = append(out, c.Name)
		}
	}
	return out, nil
}

// podsOfPackage returns the names of the revisions of a package that have pods. It reads from the
// API server.
func (p PackageRuntime) podsOfPackage(ctx context.Context, who plan.Requester) ([]string, error) {
	var pods corev1.PodList
	err := p.Pods.List(
		ctx, &pods, client.InNamespace(p.Namespace), client.MatchingLabels{packageLabel(who): who.Package.Name},
		client.HasLabels{v1.LabelRevision},
	)
	if err != nil {
		return nil, apply.ErrServer.New(err, "list the pods of %s", who.Package.Name)
	}
	var out []string
	for i := range pods.Items {
		out = append(out, pods.Items[i].Labels[v1.LabelRevision])
	}
	return out, nil
}

func packageLabel(who plan.Requester) string {
	if who.Package.Kind == v1.FunctionKind {
		return v1.LabelFunction
	}
	return v1.LabelProvider
}

// others returns owners for names, without duplicates and without the revision itself.
func others(who plan.Requester, names []string) []plan.Owner {
	var out []plan.Owner
	for _, name := range names {
		o := plan.Owner{APIVersion: who.Package.APIVersion, Kind: v1.RevisionKind(who.Package.Kind), Name: name}
		if name != who.Revision.Name && !slices.Contains(out, o) {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b plan.Owner) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Stop deletes the Deployment of a revision.
func (p PackageRuntime) Stop(ctx context.Context, revision plan.Owner) (gone bool, err error) {
	return p.Remove(ctx, revision)
}
