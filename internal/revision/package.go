package revision

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// PolicyOf returns the policy that a package requests, with the defaults of the packages guide:
// activation is automatic, and one inactive revision is kept. The policy contains the rollback of
// the package until a user requests another attempt.
func PolicyOf(p v1.Package) Policy {
	spec := p.PackageSpec()
	// With an invalid policy, only users activate revisions.
	automatic := spec.RevisionActivationPolicy == v1.AutomaticActivation || spec.RevisionActivationPolicy == ""
	out := Policy{Automatic: automatic, HistoryLimit: 1}
	if spec.RevisionHistoryLimit != nil {
		out.HistoryLimit = *spec.RevisionHistoryLimit
	}
	out.Keep = []string{p.PackageStatus().LastHealthyRevision}
	if a := p.PackageStatus().Activation; a != nil {
		out.Keep = append(out.Keep, a.Previous)
	}
	if b := p.PackageStatus().Rollback; isRolledBack(p) {
		out.Refused, out.Back = b.From, b.To
	}
	return out
}

// isRolledBack reports whether a package was rolled back, and no user has requested another attempt since: with a
// change of the spec or of the annotation.
func isRolledBack(p v1.Package) bool {
	b := p.PackageStatus().Rollback
	return b != nil && b.Generation == p.GetGeneration() && v1.IsRetryHandled(p, p.PackageStatus().LastHandledRetry)
}

// MayPull reports whether a pull policy allows fetching content from a registry.
func MayPull(p corev1.PullPolicy) bool { return p != corev1.PullNever }

// Back returns the name of the revision to which another one is rolled back: the last healthy one
// before it, regardless of later attempts or, if that is unknown, the revision that was active
// before and has not failed. It returns "" if there is none, and for the last healthy revision itself.
func Back(p v1.Package, name string, revisions []v1.PackageRevision) string {
	status := p.PackageStatus()
	last := status.LastHealthyRevision
	if a := status.Activation; a != nil && a.Healthy && a.Revision == name {
		last = a.Previous
	}
	if last == name {
		return ""
	}
	if slices.ContainsFunc(revisions, func(rev v1.PackageRevision) bool { return rev.GetName() == last }) {
		return last
	}
	return Previous(name, States(slices.DeleteFunc(slices.Clone(revisions), HasFailed), name))
}

// States returns the states of revisions for Decide. They include the current revision even if it
// does not exist yet.
func States(revisions []v1.PackageRevision, current string) []State {
	out := []State{}
	exists := false
	for _, rev := range revisions {
		exists = exists || rev.GetName() == current
		out = append(out, State{
			Name: rev.GetName(), Number: rev.RevisionSpec().Revision,
			Active: rev.RevisionSpec().DesiredState == v1.RevisionActive,
		})
	}
	if !exists {
		out = append(out, State{Name: current})
	}
	return out
}

// Current returns the desired revision for the content with a digest: a new one if existing is nil,
// and otherwise an updated copy of the existing one.
func Current(
	p v1.Package, meta xpkg.Meta, digest, name string, existing v1.PackageRevision, d Decision,
) v1.PackageRevision {
	var rev v1.PackageRevision
	if existing == nil {
		rev = p.NewRevision()
		rev.SetName(name)
		rev.RevisionSpec().DesiredState = v1.RevisionInactive
	} else {
		rev = existing.DeepCopyObject().(v1.PackageRevision)
	}
	mirror(p, meta, digest, rev)
	if d.Activate == name {
		rev.RevisionSpec().DesiredState, rev.RevisionSpec().Revision = v1.RevisionActive, d.Number
	}
	return rev
}

// mirror copies the settings of a package to the revision of a digest. It sets neither the desired
// state nor the number, which Decide determines.
func mirror(p v1.Package, meta xpkg.Meta, digest string, rev v1.PackageRevision) {
	from, to := p.PackageSpec(), rev.RevisionSpec()
	keepSource(rev, from.Package)
	to.Image, to.Digest = from.Package, digest
	to.PackagePullPolicy, to.PackagePullSecrets = from.PackagePullPolicy, from.PackagePullSecrets
	to.IgnoreCrossplaneConstraints = from.IgnoreCrossplaneConstraints
	to.SkipDependencyResolution = from.SkipDependencyResolution
	to.CommonLabels, to.CommonAnnotations = from.CommonLabels, from.CommonAnnotations
	if runtime := p.RuntimeSpec(); runtime != nil {
		rev.RuntimeSpec().PackageRuntimeSpec = *runtime.DeepCopy()
		mirrorSecrets(p, rev.RuntimeSpec())
	}
	rev.SetLabels(desired.Overlay(rev.GetLabels(), xpkg.WithoutReserved(meta.Labels), map[string]string{
		v1.LabelPackage: p.GetName(),
	}))
	rev.SetAnnotations(desired.Overlay(rev.GetAnnotations(), xpkg.WithoutReserved(meta.Annotations)))
	mirrorContentPolicy(p, rev)
	setAnnotation(rev, v1.AnnotationRetry, p.GetAnnotations()[v1.AnnotationRetry])
	recordKey(p, digest, rev)
	Own(p, rev)
}

// AnnotationContentPolicy on a package with the value "Lenient" makes the manager install, with a
// warning, content that other package managers accept: objects that the kind of package must not
// contain are left out, and the last one of duplicate keys in YAML counts. The default is "Strict".
const AnnotationContentPolicy = "xpkg.dev/content-policy"

// AcceptedContent returns a description of each deviation that the lenient policy accepts in a
// package. It describes at most ten, and counts the others.
func AcceptedContent(pkg *xpkg.Package) []string {
	const most = 10
	found := pkg.Accepted()
	var out []string
	for i, f := range found {
		if i == most {
			return append(out, fmt.Sprintf("%d more, which `xpkg lint` lists", len(found)-most))
		}
		text := f.Code.Name + ": " + f.Description()
		if f.Line > 0 {
			text = fmt.Sprintf("line %d: %s", f.Line, text)
		}
		out = append(out, text)
	}
	return out
}

// LenientContent reports whether the content of a package or a revision is read with the lenient policy.
func LenientContent(o metav1.Object) bool {
	return o.GetAnnotations()[AnnotationContentPolicy] == "Lenient"
}

// mirrorContentPolicy copies the content policy of a package to a revision.
func mirrorContentPolicy(p v1.Package, rev v1.PackageRevision) {
	annotations := desired.Overlay(rev.GetAnnotations())
	if delete(annotations, AnnotationContentPolicy); LenientContent(p) {
		annotations = desired.Overlay(annotations, map[string]string{AnnotationContentPolicy: "Lenient"})
	}
	rev.SetAnnotations(annotations)
}

// mirrorSecrets sets the names of the Secrets with the runtime's certificates. A Function calls no other server, and
// has no client certificate.
func mirrorSecrets(p v1.Package, to *v1.PackageRevisionRuntimeSpec) {
	to.TLSServerSecretName = new(v1.TLSServerSecretName(p.GetName()))
	if p.PackageKind() == v1.ProviderKind {
		to.TLSClientSecretName = new(v1.TLSClientSecretName(p.GetName()))
	}
}

// Own makes a package the only owner of one of its revisions, removes the finalizer of Crossplane
// core, and reports whether the revision changed. After a restore from a backup, the package has
// another UID, so its revisions have no owner that exists (packages v2 design, "A Note on Backup
// and Restore").
func Own(p v1.Package, rev v1.PackageRevision) (changed bool) {
	owners := []metav1.OwnerReference{{
		APIVersion: v1.GroupVersion.String(), Kind: p.PackageKind(), Name: p.GetName(), UID: p.GetUID(),
		Controller: new(true), BlockOwnerDeletion: new(true),
	}}
	finalizers := slices.DeleteFunc(
		slices.Clone(rev.GetFinalizers()), func(f string) bool { return f == v1.FinalizerRevision },
	)
	if equality.Semantic.DeepEqual(owners, rev.GetOwnerReferences()) && len(finalizers) == len(rev.GetFinalizers()) {
		return false
	}
	rev.SetOwnerReferences(owners)
	rev.SetFinalizers(finalizers)
	return true
}

// Additions returns the metadata and the webhook service that a revision adds to the objects of its
// package. Namespace is the namespace of its runtime.
func Additions(rev v1.PackageRevision, namespace string) desired.Options {
	spec, pkg := rev.RevisionSpec(), rev.GetLabels()[v1.LabelPackage]
	return desired.Options{
		Labels: spec.CommonLabels, Annotations: spec.CommonAnnotations,
		Package: pkg, Webhooks: desired.Service{Name: pkg, Namespace: namespace},
	}
}

// Requester returns the owner that the objects of a revision get. Siblings are all revisions of the
// package.
func Requester(p v1.Package, rev v1.PackageRevision, siblings []v1.PackageRevision) plan.Requester {
	api := v1.GroupVersion.String()
	requester := plan.Requester{
		Revision: plan.Owner{APIVersion: api, Kind: v1.RevisionKind(p.PackageKind()), Name: rev.GetName(), UID: rev.GetUID()},
		Package:  plan.Owner{APIVersion: api, Kind: p.PackageKind(), Name: p.GetName(), UID: p.GetUID()},
	}
	for _, s := range siblings {
		requester.Siblings = append(requester.Siblings, s.GetName())
	}
	requester.Adopts = Adoptions(p, rev)
	return requester
}

// Objects returns the objects that the status of a revision lists.
func Objects(rev v1.PackageRevision) []plan.Ref {
	var refs []plan.Ref
	for _, o := range rev.RevisionStatus().ObjectRefs {
		refs = append(refs, plan.Ref{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name})
	}
	return refs
}

// Resolved returns the digest to which the reference of a package was last resolved, or "" if the
// reference or its rewriting has changed since. Image is the reference after rewriting.
func Resolved(p v1.Package, image string, revisions []v1.PackageRevision) string {
	spec, status := p.PackageSpec(), p.PackageStatus()
	if status.CurrentIdentifier == spec.Package && status.ResolvedPackage == image {
		return status.ResolvedDigest
	}
	if status.CurrentRevision != "" {
		return ""
	}
	return Restored(p, revisions)
}

// Restored returns the digest of a package without a status, which was lost, for example by a restore, or is not
// written yet: the digest of its newest revision with the same reference, or "" without one. The registry may return
// another digest by now.
func Restored(p v1.Package, revisions []v1.PackageRevision) string {
	var newest v1.PackageRevision
	for _, rev := range revisions {
		if rev.RevisionSpec().Image == p.PackageSpec().Package &&
			(newest == nil || rev.RevisionSpec().Revision > newest.RevisionSpec().Revision) {
			newest = rev
		}
	}
	if newest == nil {
		return ""
	}
	return newest.RevisionSpec().Digest
}

// Written returns the last writes of objects that the statuses of a package's revisions record. The
// generation of an object only increases, so the record with the highest generation is the latest.
func Written(revisions []v1.PackageRevision) map[plan.Ref]plan.Written {
	out := map[plan.Ref]plan.Written{}
	for _, rev := range revisions {
		for _, o := range rev.RevisionStatus().ObjectRefs {
			ref := plan.Ref{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name}
			if o.Generation > out[ref].Generation {
				out[ref] = plan.Written{UID: o.UID, Generation: o.Generation}
			}
		}
	}
	return out
}

// ErrNameTooLong is the code for a package that cannot have revisions.
var ErrNameTooLong = errcode.Code{
	Name: "PackageNameTooLong", Class: errcode.Invalid,
	Cause: "The name of a package is the value of a label on its revisions, and that of an install object in a namespace a label on the Pods of its controller. A label has at most 63 characters.",
	Fix:   "Install the package under a shorter name.",
}

// Installable fails if a package cannot be installed with its content: with WrongKind if the content is of another
// kind, with PackageNameTooLong if the name of the package is no value of a label, with SharedWebhook, see
// [CheckShared], with ConversionWithoutRuntime, and for labels or annotations that an API server rejects.
func Installable(p v1.Package, pkg *xpkg.Package) error {
	meta := pkg.Meta
	if n := len(p.GetName()); n > validation.LabelValueMaxLength {
		return ErrNameTooLong.New(
			nil, "the name of the %s %s has %d characters", strings.ToLower(p.PackageKind()), p.GetName(), n,
		)
	}
	if string(meta.Kind) == p.PackageKind() {
		return cmp.Or(CheckShared(p, pkg), checkConversions(p, pkg), checkMetadata(p, pkg))
	}
	arguments := strings.ToLower(string(meta.Kind)) + " " + p.PackageSpec().Package
	if ref, err := oci.ParseReference(p.PackageSpec().Package, oci.ParseOptions{}); err == nil &&
		oci.ToDNSLabel(ref.Repository) != p.GetName() {
		arguments += " " + p.GetName()
	}
	return xpkg.ErrWrongKind.New(nil, "%s is a %s and not a %s", p.PackageSpec().Package, meta.Kind, p.PackageKind()).
		WithDo("Install it as a %s instead, with `xpkg install %s`.", meta.Kind, arguments)
}

// Cause returns an identifier of the current spec of a package.
func Cause(p v1.Package) string { return fmt.Sprintf("%s/%d", p.GetUID(), p.GetGeneration()) }
