package firstgeneration

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	controllers "github.com/xpkg-dev/xpkg/internal/controller/firstgen"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// snapshot is the state of a cluster.
type snapshot struct {
	namespace string
	// managers are the Deployments of the former package manager.
	managers []appsv1.Deployment
	// manager is the Deployment of the manager, or nil.
	manager  *appsv1.Deployment
	installs []*install
	// packages are the Packages that users created. They stay, and the manager replaces their controllers.
	packages []*install
	// stacks are the Stacks that users created, as NAMESPACE/NAME.
	stacks []string
	// providers are the Providers by name.
	providers map[string]*v1.Provider
	// converted reports that the CRDs of packages.crossplane.io are those of the manager.
	converted bool
	// replaced has the texts that replacements have replaced.
	replaced map[string]bool
	// contents are the packages of the Providers that are moved.
	contents []*content
	// problems are the reasons for which the migration is refused.
	problems []migration.Finding
}

// withControllers returns the objects for which the former package manager created controllers: install objects, and
// Packages of users.
func (s *snapshot) withControllers() []*install { return slices.Concat(s.installs, s.packages) }

// install is an install object, or a Package that a user created, with what the former package manager created for it.
type install struct {
	group, kind     string
	namespace, name string
	object          *unstructured.Unstructured
	spec            packagesv1alpha1.InstallSpec
	// reference is the reference of the package, after replacements.
	reference oci.Reference
	// successor is the object of packages.crossplane.io that was created from an object of stacks.crossplane.io, or nil.
	successor *install
	// record is the Package or Stack, or nil.
	record *unstructured.Unstructured
	// kept are the record in packages.crossplane.io and the StackDefinitions of both groups, which the manager goes on
	// using.
	kept []*unstructured.Unstructured
	// deployments are the Deployments that the former package manager created for the record.
	deployments []appsv1.Deployment
	// crds are the CRDs of the package that exist.
	crds []*apiextensionsv1.CustomResourceDefinition
	// provider is the name of the Provider that gets the CRDs.
	provider string
}

// target returns the kind of the install object in packages.crossplane.io.
func (in *install) target() string {
	switch in.kind {
	case "ClusterStackInstall":
		return packagesv1alpha1.ClusterPackageInstallKind
	case "StackInstall":
		return packagesv1alpha1.PackageInstallKind
	}
	return in.kind
}

// kindStack is the kind of records in stacks.crossplane.io.
const kindStack = "Stack"

func (in *install) isEarlier() bool { return in.group == packagesv1alpha1.EarlierGroup }

// formerManagers are the names of the Deployments of package managers in the charts of Crossplane.
var formerManagers = []string{"crossplane-package-manager", "crossplane-stack-manager"}

// read reads the cluster.
func (m *Migration) read(ctx context.Context) (*snapshot, error) {
	s := &snapshot{
		namespace: cmp.Or(m.Manager.Namespace, bootstrap.DefaultNamespace), providers: map[string]*v1.Provider{},
		replaced: map[string]bool{},
	}
	names := m.FormerManagers
	if len(names) == 0 {
		names = formerManagers
	}
	deployments := &appsv1.DeploymentList{}
	if err := m.Client.List(ctx, deployments); err != nil {
		return nil, fmt.Errorf("list Deployments: %w", err)
	}
	for i, d := range deployments.Items {
		switch {
		case d.Namespace == s.namespace && slices.Contains(names, d.Name):
			s.managers = append(s.managers, d)
		case d.Namespace == s.namespace && d.Name == bootstrap.Name:
			s.manager = &deployments.Items[i]
		}
	}
	providers := &v1.ProviderList{}
	if err := m.Client.List(ctx, providers); ignoreNotServed(err) != nil {
		return nil, fmt.Errorf("list Providers: %w", err)
	}
	for i := range providers.Items {
		s.providers[providers.Items[i].Name] = &providers.Items[i]
	}
	crds := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := m.Client.List(ctx, crds); err != nil {
		return nil, fmt.Errorf("list CRDs: %w", err)
	}
	s.converted = isConverted(crds.Items)
	if err := m.readInstalls(ctx, s, deployments.Items, crds.Items); err != nil {
		return nil, err
	}
	return s, nil
}

// isConverted reports whether all CRDs of packages.crossplane.io exist and are those of the manager.
func isConverted(all []apiextensionsv1.CustomResourceDefinition) bool {
	own := []string{
		packagesv1alpha1.ClusterPackageInstallKind, packagesv1alpha1.PackageInstallKind, packagesv1alpha1.PackageKind,
		packagesv1alpha1.StackDefinitionKind,
	}
	for _, crd := range all {
		if crd.Spec.Group == packagesv1alpha1.Group && crd.Annotations[plan.ContentDigestAnnotation] != "" {
			own = slices.DeleteFunc(own, func(kind string) bool { return kind == crd.Spec.Names.Kind })
		}
	}
	return len(own) == 0
}

// ignoreNotServed returns nil for the error of a kind that the cluster does not serve.
func ignoreNotServed(err error) error {
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// readInstalls reads the install objects of both groups. An object that was converted already counts once.
func (m *Migration) readInstalls(
	ctx context.Context, s *snapshot, deployments []appsv1.Deployment, crds []apiextensionsv1.CustomResourceDefinition,
) error {
	seen := map[string]*install{}
	for _, g := range []struct {
		group string
		kinds []string
	}{
		{packagesv1alpha1.EarlierGroup, []string{"ClusterStackInstall", "StackInstall"}},
		{packagesv1alpha1.Group, packagesv1alpha1.InstallKinds()},
	} {
		for _, kind := range g.kinds {
			list, err := m.list(ctx, g.group, kind)
			if err != nil {
				return err
			}
			for i := range list {
				in := &install{
					group: g.group, kind: kind, namespace: list[i].GetNamespace(), name: list[i].GetName(), object: &list[i],
				}
				if err := in.readSpec(); err != nil {
					return err
				}
				if earlier := seen[in.installedBy()]; earlier != nil {
					s.report(earlier.copyFinding(in.object))
					earlier.successor = in
					continue
				}
				if m.isServed(in) {
					continue
				}
				seen[in.installedBy()] = in
				if err := m.readOwn(ctx, s, in); err != nil {
					return err
				}
				s.installs = append(s.installs, in)
			}
		}
	}
	for _, in := range s.installs {
		in.readObjects(s, deployments, crds)
		m.resolve(s, in)
		if err := m.checkRuntime(ctx, s, in); err != nil {
			return err
		}
	}
	if err := m.readPackages(ctx, s, deployments); err != nil {
		return err
	}
	stacks, err := m.list(ctx, packagesv1alpha1.EarlierGroup, kindStack)
	if err != nil {
		return err
	}
	for i := range stacks {
		isRecord := func(in *install) bool {
			return in.isEarlier() && in.namespace == stacks[i].GetNamespace() && in.name == stacks[i].GetName()
		}
		if !slices.ContainsFunc(s.installs, isRecord) {
			s.stacks = append(s.stacks, stacks[i].GetNamespace()+"/"+stacks[i].GetName())
		}
	}
	s.problems = append(s.problems, m.unusedReplacements(s)...)
	slices.SortFunc(s.installs, func(a, b *install) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name), cmp.Compare(a.target(), b.target()))
	})
	return nil
}

// isServed reports whether the manager has found the Provider of an install object by a CRD, which then needs no
// package. A former package manager did not write this part of the status.
func (m *Migration) isServed(in *install) bool {
	provider, _, _ := unstructured.NestedString(in.object.Object, "status", "provider")
	_, to := m.replacement(in)
	return !in.isEarlier() && in.spec.CRD != "" && provider != "" && to == ""
}

// readPackages reads the Packages that users created: no install object owns them, or has their name.
func (m *Migration) readPackages(ctx context.Context, s *snapshot, deployments []appsv1.Deployment) error {
	list, err := m.list(ctx, packagesv1alpha1.Group, packagesv1alpha1.PackageKind)
	if err != nil {
		return err
	}
	for i := range list {
		p := &list[i]
		if metav1.GetControllerOf(p) != nil || p.GetAnnotations()[state.AnnotationInstalledBy] != "" ||
			slices.ContainsFunc(p.GetOwnerReferences(), isFirstGeneration) ||
			slices.ContainsFunc(
				s.installs, func(in *install) bool { return in.namespace == p.GetNamespace() && in.name == p.GetName() },
			) {
			continue
		}
		in := &install{
			group: packagesv1alpha1.Group, kind: packagesv1alpha1.PackageKind, namespace: p.GetNamespace(), name: p.GetName(),
			object: p, record: p,
		}
		in.readDeployments(s, deployments)
		if err := m.checkRuntime(ctx, s, in); err != nil {
			return err
		}
		s.packages = append(s.packages, in)
	}
	return nil
}

func (m *Migration) list(ctx context.Context, group, kind string) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1alpha1", Kind: kind + "List"})
	if err := ignoreNotServed(m.Client.List(ctx, list)); err != nil {
		return nil, fmt.Errorf("list %ss: %w", kind, err)
	}
	return list.Items, nil
}

// get returns an object, or nil if it does not exist.
func (m *Migration) get(ctx context.Context, group, kind, namespace, name string) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1alpha1", Kind: kind})
	err := m.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, o)
	switch {
	case err == nil:
		return o, nil
	case ignoreNotServed(err) == nil:
		return nil, nil
	}
	return nil, fmt.Errorf("read %s %s/%s: %w", kind, namespace, name, err)
}

func (in *install) readSpec() error {
	raw, err := json.Marshal(in.object.Object["spec"])
	if err == nil {
		err = json.Unmarshal(raw, &in.spec)
	}
	if err != nil {
		return fmt.Errorf("read the spec of %s: %w", in.describe(), err)
	}
	return nil
}

// readOwn reads the record and the StackDefinitions of an install object, and reports those with its name that are not
// its own.
func (m *Migration) readOwn(ctx context.Context, s *snapshot, in *install) error {
	if in.isEarlier() {
		stack, err := m.get(ctx, in.group, kindStack, in.namespace, in.name)
		if err != nil {
			return err
		}
		in.record = stack
		s.report(in.ownFinding(stack))
	}
	for _, k := range keptKinds() {
		o, err := m.get(ctx, k.Group, k.Kind, in.namespace, in.name)
		if err != nil {
			return err
		}
		if o == nil {
			continue
		}
		s.report(in.ownFinding(o))
		in.kept = append(in.kept, o)
		if k.Kind == packagesv1alpha1.PackageKind && !in.isEarlier() {
			in.record = o
		}
	}
	return nil
}

// keptKinds returns the kinds of the objects with the name of an install object that the manager goes on using.
func keptKinds() []schema.GroupKind {
	return []schema.GroupKind{
		{Group: packagesv1alpha1.Group, Kind: packagesv1alpha1.PackageKind},
		{Group: packagesv1alpha1.Group, Kind: packagesv1alpha1.StackDefinitionKind},
		{Group: packagesv1alpha1.EarlierGroup, Kind: packagesv1alpha1.StackDefinitionKind},
	}
}

// report records a problem, if there is one.
func (s *snapshot) report(f *migration.Finding) {
	if f != nil {
		s.problems = append(s.problems, *f)
	}
}

// readDeployments finds the Deployments of the record.
func (in *install) readDeployments(s *snapshot, all []appsv1.Deployment) {
	for _, d := range all {
		s.report(in.deploymentFinding(&d))
		if in.record != nil && d.Namespace == in.namespace && in.created(&d) &&
			d.Annotations[plan.ContentDigestAnnotation] == "" {
			in.deployments = append(in.deployments, d)
		}
	}
}

// readObjects finds the Deployments and the CRDs of the record.
func (in *install) readObjects(
	s *snapshot, deployments []appsv1.Deployment, crds []apiextensionsv1.CustomResourceDefinition,
) {
	in.readDeployments(s, deployments)
	if in.record == nil {
		return
	}
	raw, err := json.Marshal(in.record.Object["spec"])
	var spec packagesv1alpha1.PackageSpec
	if err != nil || json.Unmarshal(raw, &spec) != nil {
		return
	}
	for i := range crds {
		crd := &crds[i]
		if slices.ContainsFunc(spec.CRDs, func(k packagesv1alpha1.Kind) bool {
			group, _, _ := strings.Cut(k.APIVersion, "/")
			return group == crd.Spec.Group && k.Kind == crd.Spec.Names.Kind
		}) {
			in.crds = append(in.crds, crd)
		}
	}
}

// resolve determines the package and the Provider of an install object, and records problems.
func (m *Migration) resolve(s *snapshot, in *install) {
	problem := func(remedy, format string, args ...any) {
		s.problems = append(s.problems, migration.Finding{
			Problem: in.describe() + " " + fmt.Sprintf(format, args...), Remedy: remedy,
		})
	}
	if in.moved().GetDeletionTimestamp() != nil {
		problem("wait until it is deleted", "is being deleted")
	}
	name := cmp.Or(in.spec.Package, in.spec.CRD)
	if from, to := m.replacement(in); to != "" {
		s.replaced[from] = true
		in.spec.Package, in.spec.CRD, in.spec.Source = to, "", ""
	}
	if in.spec.Package == "" {
		problem("name its package in the file of --replace, as "+cmp.Or(name, "PACKAGE")+"=REFERENCE", "names no package")
		return
	}
	ref, err := controllers.Options{}.Reference(in.spec.Source, in.spec.Package)
	if err != nil {
		problem(
			"correct spec.package, or replace it with --replace", "has the package %.100q, which is no reference",
			in.spec.Package,
		)
		return
	}
	in.reference = ref
	in.provider = controllers.ProviderName(in.namespace, in.name, s.namespace)
	if !in.isCluster() {
		in.provider = s.sharedProvider(ref)
	}
	s.report(in.providerFinding(s.providers[in.provider]))
	for _, crd := range in.crds {
		s.report(in.crdFinding(crd))
	}
}
