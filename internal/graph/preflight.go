package graph

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// NewPackage returns the object of a package that is installed as a dependency of parent, without
// its name.
func (c Change) NewPackage(parent v1.Package) v1.Package {
	p := v1.NewPackage(string(c.To.Kind))
	p.SetLabels(map[string]string{LabelAutoInstalled: "true"})
	p.SetAnnotations(map[string]string{AnnotationRequiredBy: strings.Join(c.RequiredBy, ", ")})
	p.PackageSpec().Package = c.Reference()
	p.PackageSpec().PackagePullSecrets = inheritedPullSecrets(parent)
	return p
}

// Names returns the possible names of a new package: the name that Crossplane would use and, if a package of another
// repository has it, a unique one.
func (c Change) Names() []string {
	name := oci.ToDNSLabel(c.To.RepositoryReference().Repository)
	return []string{name, oci.FriendlyID(name, oci.DigestOf([]byte(c.To.Repository)).Hex())}
}

// Conflicts returns a refusal for each object that can never be established after the changes for an owner, which has
// its own objects: another package owns it, or two of the packages contain it. Added are the objects of each change,
// and holders the owners of existing objects; Conflicts adds to them.
func Conflicts(
	holders plan.Holders, owner string, own []plan.Ref, changes []Change, added [][]plan.Ref,
) []plan.Refusal {
	refusals := holders.Take(owner, own)
	for i, c := range changes {
		for _, refusal := range holders.Take(c.To.Repository, added[i]) {
			refusal.Fix = c.fixOfHeld(refusal.Holder)
			refusals = append(refusals, refusal)
		}
	}
	return refusals
}

// fixOfHeld returns the remedy for objects of a dependency that another package holds, or "": the other package can be
// the dependency, from another repository.
func (c Change) fixOfHeld(holder string) string {
	kind, name, _ := strings.Cut(holder, "/")
	if !strings.EqualFold(kind, string(c.To.Kind)) {
		return ""
	}
	short := v1.ObjectName(kind, name)
	return fmt.Sprintf(
		"%s Otherwise uninstall it, or do not install the package that requires %s. Nothing was written.",
		MovedAdvice(short, c.Reference()), c.To.Repository,
	)
}

// MovedAdvice returns the remedy for objects whose holder may be the same package from another repository. Reference is
// that of the refused package.
func MovedAdvice(holder, reference string) string {
	return fmt.Sprintf(
		"If %[1]s is the same package from another repository, install it from this one with `xpkg update %[1]s %[2]s`.",
		holder, reference,
	)
}

// ExplainAdoption makes the refusals of a package that is installed as a dependency name the command that installs it
// and adopts the objects of users.
func (c Change) ExplainAdoption(refusals []plan.Refusal) {
	for i := range refusals {
		if refusals[i].Cause == plan.NeedsAdoption {
			refusals[i].Fix = fmt.Sprintf("review the objects, and run `xpkg install %s %s %s --adopt` first to let the package adopt them, or delete them",
				strings.ToLower(string(c.To.Kind)), c.Reference(), c.Names()[0])
		}
	}
}

// ExplainSwitch makes the refusals of kinds that another package holds name the command with which a package uses that
// package for its kinds: it requires the package that was selected for them before.
func ExplainSwitch(p v1.Package, refusals []plan.Refusal) {
	selected := KindProviders(p)
	for i := range refusals {
		_, group, _ := strings.Cut(refusals[i].Ref.Name, ".")
		isSelected := slices.ContainsFunc(selected, func(d dependency.Dependency) bool {
			kind, err := dependency.ParseKindRef(d.CRD)
			return err == nil && kind.Group == group && strings.Contains(refusals[i].Reason, d.Package)
		})
		if isSelected && refusals[i].Holder != "" {
			refusals[i].Fix = fmt.Sprintf("to let %s use the kinds of %s, run `kubectl annotate %ss.%s %s %s-`",
				revision.ObjectName(p), refusals[i].Holder, strings.ToLower(p.PackageKind()), v1.Group, p.GetName(),
				AnnotationKindProviders)
		}
	}
}

// PolicyFor returns the policy for changes to other packages on behalf of a revision, if the manager is configured with
// a policy. A revision that is about to be replaced changes no package. A revision that a rollback activated may revert
// the changes that were made for the failed version.
func PolicyFor(configured Policy, p v1.Package, rev v1.PackageRevision) Policy {
	back := revision.PolicyOf(p).Back == rev.GetName()
	switch {
	case configured == Upgrade && back:
		return UpgradeOrDowngrade
	case !back && p.PackageSpec().Package != rev.RevisionSpec().Image:
		return None
	}
	return configured
}

// NodeFromRevisions returns the node of a package with these revisions: for the requested version, or for the
// version to which it was rolled back. Dependencies returns the dependencies of content.
func NodeFromRevisions(p v1.Package, revisions []v1.PackageRevision, dependencies Dependencies) (Node, bool) {
	image, content := p.PackageSpec().Package, CurrentDigest(p)
	if content.IsZero() && p.PackageStatus().CurrentRevision == "" {
		content, _ = oci.ParseDigest(revision.Restored(p, revisions))
	}
	if back := RolledBackTo(p, revisions); back != nil {
		image = back.RevisionSpec().Image
		content, _ = oci.ParseDigest(back.RevisionSpec().Digest)
	}
	n, ok := NodeFromImage(p, image, content, dependencies(image, content))
	n.Running, n.Pending = Running(p, revisions), isPending(p, revisions)
	return n, ok
}

// isPending reports whether a package has reported that it is not ready, and no object of it was written yet. Its
// revisions list their objects once all are written.
func isPending(p v1.Package, revisions []v1.PackageRevision) bool {
	return p.GetCondition(v1.TypeReady).Status == corev1.ConditionFalse && p.PackageStatus().LastHealthyRevision == "" &&
		!slices.ContainsFunc(revisions, func(rev v1.PackageRevision) bool {
			return len(rev.RevisionStatus().ObjectRefs) > 0
		})
}
