package firstgen

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/watch"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/firstgen"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// chosen returns the package of an install object: spec.package, or the package for the kind in spec.crd, which it
// records in the status. For a kind that another Provider has, it returns the name of that Provider instead.
//
// A selection that is recorded on the object, or on its Provider, is kept. Otherwise an installed Provider that has the
// CRD takes precedence over the packages in the sources.
func (b *Base) chosen(
	ctx context.Context, in packagesv1alpha1.Install,
) (ref oci.Reference, provider string, err error) {
	spec, status := in.InstallSpec(), in.InstallStatus()
	if err := checkSpec(spec); err != nil {
		return oci.Reference{}, "", err
	}
	if spec.Package != "" {
		status.ChosenPackage = nil
		ref, err = b.Options.Reference(spec.Source, spec.Package)
		return ref, "", err
	}
	crd, ok := firstgen.ParseCRDReference(spec.CRD)
	if !ok {
		return oci.Reference{}, "",
			ErrReference.New(nil, "spec.crd is %.200q, want PLURAL.GROUP or PLURAL.GROUP/VERSION", spec.CRD)
	}
	own, err := b.ownProvider(ctx, in)
	if err != nil {
		return oci.Reference{}, "", err
	}
	recorded := recordedChoice(in, crd, own)
	if other, err := b.installedOther(ctx, crd, own, recorded); err != nil || other != "" {
		if err == nil {
			status.ChosenPackage = nil
		}
		return oci.Reference{}, other, err
	}
	if recorded == "" && own != nil {
		// The object named the package before, and now the CRD, which it does not own.
		if held, err := b.heldByOwn(ctx, crd, own); err != nil || held {
			status.ChosenPackage = nil
			return oci.Reference{}, own.Name, err
		}
	}
	if recorded == "" {
		selected, err := b.choose(ctx, in, crd, own)
		if err != nil {
			return oci.Reference{}, "", err
		}
		if p, err := b.otherOf(ctx, selected.Repository, own); err != nil || p != nil {
			if err != nil {
				return oci.Reference{}, "", err
			}
			status.ChosenPackage = nil
			return oci.Reference{}, p.Name, nil
		}
		recorded = selected.Ref()
	}
	if ref, err = b.Options.Reference("", recorded); err != nil {
		return oci.Reference{}, "", err
	}
	status.ChosenPackage = &packagesv1alpha1.ChosenPackage{CRD: spec.CRD, Package: ref.String()}
	return ref, "", nil
}

// lockKind waits until no other object selects a package for a kind of the same API group. Unlock ends the selection,
// whose result must be written before.
func (b *Base) lockKind(ctx context.Context, in packagesv1alpha1.Install) (unlock func(), err error) {
	crd, ok := firstgen.ParseCRDReference(in.InstallSpec().CRD)
	if !ok || b.Choosing == nil {
		return func() {}, nil
	}
	return b.Choosing.Lock(ctx, crd.Group)
}

// installedOther returns the name of the installed Provider, other than the own one, that an install object uses for a
// CRD, or "".
func (b *Base) installedOther(
	ctx context.Context, crd firstgen.CRDReference, own *v1.Provider, recorded string,
) (string, error) {
	p, err := b.otherWith(ctx, crd, own)
	if err != nil || p == nil || !useInstalled(p, recorded) {
		return "", err
	}
	return p.Name, nil
}

// heldByOwn reports whether the active revision of the own Provider of an install object has a CRD.
func (b *Base) heldByOwn(ctx context.Context, crd firstgen.CRDReference, own *v1.Provider) (bool, error) {
	revisions, err := state.RevisionsOf(ctx, b.API.Client, own)
	return err == nil && slices.ContainsFunc(
		revisions, func(rev v1.PackageRevision) bool { return revision.IsActive(rev) && hasCRD(rev, crd) },
	), err
}

// useInstalled reports whether an install object uses a Provider that it does not maintain: unless another package is
// recorded.
func useInstalled(p *v1.Provider, recorded string) bool {
	return recorded == "" || oci.SameRepository(recorded, p.Spec.Package)
}

// recordedChoice returns the package that was selected for a CRD before, or "": by a user in the annotation of the
// install object, or by the manager in its status or on its Provider.
func recordedChoice(in packagesv1alpha1.Install, crd firstgen.CRDReference, own *v1.Provider) string {
	for _, d := range graph.KindProviders(in) {
		if k, err := dependency.ParseKindRef(d.CRD); err == nil && k == kindRef(crd) {
			return referenceOf(d)
		}
	}
	text := in.InstallSpec().CRD
	if c := in.InstallStatus().ChosenPackage; c != nil && c.CRD == text {
		return c.Package
	}
	if own != nil && own.Annotations[graph.AnnotationProvides] == text {
		return own.Spec.Package
	}
	return ""
}

// referenceOf returns the reference of a selected package. Its constraint is a tag or a digest.
func referenceOf(d dependency.Dependency) string {
	switch {
	case d.Constraint == "":
		return d.Package
	case strings.HasPrefix(d.Constraint, "sha256:"):
		return d.Package + "@" + d.Constraint
	}
	return d.Package + ":" + d.Constraint
}

func kindRef(crd firstgen.CRDReference) dependency.KindRef {
	return dependency.KindRef{Name: crd.Plural, Group: crd.Group, Version: crd.Version}
}

// ownProvider returns the Provider that an install object maintains, or nil.
func (b *Base) ownProvider(ctx context.Context, in packagesv1alpha1.Install) (*v1.Provider, error) {
	p := &v1.Provider{}
	err := b.API.Client.Get(ctx, types.NamespacedName{Name: b.providerName(in)}, p)
	if apierrors.IsNotFound(err) || err == nil && p.Annotations[state.AnnotationInstalledBy] != state.InstalledBy(in) {
		return nil, nil
	}
	return p, err
}

// otherWith returns a Provider, other than the own one, whose active revision has a CRD, or nil.
func (b *Base) otherWith(ctx context.Context, ref firstgen.CRDReference, own *v1.Provider) (*v1.Provider, error) {
	for _, rev := range watch.Revisions(ctx, b.API.Client, v1.ProviderKind) {
		name := rev.GetLabels()[v1.LabelPackage]
		if !revision.IsActive(rev) || own != nil && own.Name == name || !hasCRD(rev, ref) {
			continue
		}
		p := &v1.Provider{}
		err := b.API.Client.Get(ctx, types.NamespacedName{Name: name}, p)
		if !apierrors.IsNotFound(err) {
			return p, err
		}
	}
	return nil, nil
}

// otherOf returns a Provider of a repository, other than the own one, or nil. It need not have a revision yet.
func (b *Base) otherOf(ctx context.Context, repository string, own *v1.Provider) (*v1.Provider, error) {
	all := &v1.ProviderList{}
	if err := b.API.Live.List(ctx, all); err != nil {
		return nil, fmt.Errorf("list Providers: %w", err)
	}
	for i := range all.Items {
		if p := &all.Items[i]; oci.SameRepository(p.Spec.Package, repository) && (own == nil || own.Name != p.Name) {
			return p, nil
		}
	}
	return nil, nil
}

func hasCRD(rev v1.PackageRevision, ref firstgen.CRDReference) bool {
	for _, o := range revision.Objects(rev) {
		plural, group, ok := strings.Cut(o.Name, ".")
		if ok && o.Kind == plan.DefinitionKind && group == ref.Group && (ref.Plural == "*" || ref.Plural == plural) {
			return true
		}
	}
	return false
}

// checkProvides fails with KindNotProvided if the content of the package that was selected for a kind does not define
// it, and with KindHeld if another Provider has the CRD without the version.
func checkProvides(in packagesv1alpha1.Install, provider string, c content) error {
	crd, ok := firstgen.ParseCRDReference(in.InstallSpec().CRD)
	if !ok {
		return nil
	}
	kind := kindRef(crd)
	if in.InstallStatus().ChosenPackage != nil {
		return provide.CheckSelected(c.origin.String(), c.pkg, kind)
	}
	if provide.DefinesKind(c.pkg, kind) {
		return nil
	}
	return provide.ErrKindHeld.New(nil, "the Provider %s is installed, and does not serve %s", provider, kind).
		WithDo("Set spec.crd to a version that `xpkg describe provider/%s` lists, or update the Provider.", provider)
}
