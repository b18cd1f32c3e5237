package firstgeneration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	controllers "github.com/xpkg-dev/xpkg/internal/controller/firstgen"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// checkRuntime reports the objects of users with the names of objects that the manager writes for an install object.
func (m *Migration) checkRuntime(ctx context.Context, s *snapshot, in *install) error {
	if in.isCluster() {
		if in.spec.ServiceAccount == nil || len(in.spec.ServiceAccount.Annotations) == 0 || in.provider == "" {
			return nil
		}
		config, err := m.metadata(ctx, v1beta1.GroupVersion.WithKind(v1beta1.DeploymentRuntimeConfigKind), client.ObjectKey{
			Name: in.provider,
		})
		if err == nil && config != nil && config.Annotations[state.AnnotationInstalledBy] != in.installedBy() {
			annotate := fmt.Sprintf(
				"kubectl annotate deploymentruntimeconfigs.%s %s %s=%s", v1beta1.GroupVersion.Group, in.provider,
				state.AnnotationInstalledBy, in.installedBy(),
			)
			s.report(&migration.Finding{
				Problem: fmt.Sprintf("%s needs the DeploymentRuntimeConfig %s, which exists", in.describe(), in.provider),
				Remedy: fmt.Sprintf(
					"run `%s`, and the manager replaces its ServiceAccount, or create it again with another name and delete it",
					annotate,
				),
			})
		}
		return err
	}
	if m.WithoutManager {
		return nil // Controllers are processes, or another client starts the manager.
	}
	for _, o := range []struct {
		kind           schema.GroupVersionKind
		resource, name string
	}{
		{corev1.SchemeGroupVersion.WithKind("ServiceAccount"), "serviceaccounts", in.name},
		{rbacv1.SchemeGroupVersion.WithKind("Role"), "roles." + rbacv1.GroupName, controllers.RoleName(in.name)},
		{rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), "rolebindings." +
			rbacv1.GroupName, controllers.RoleName(in.name)},
	} {
		live, err := m.metadata(ctx, o.kind, client.ObjectKey{Namespace: in.namespace, Name: o.name})
		if err != nil {
			return err
		}
		if live != nil {
			s.report(in.runtimeFinding(live, o.resource))
		}
	}
	return nil
}

// checkManifests reports the objects of users, and the CRDs of another package manager, with the names of objects of
// the manager.
func (m *Migration) checkManifests(ctx context.Context, s *snapshot, manifests []bootstrap.Object) error {
	for _, want := range manifests {
		kind, key := want.GetObjectKind().GroupVersionKind(), client.ObjectKeyFromObject(want)
		isCRD, name := kind == crdKind, want.GetLabels()[labelName]
		if !isCRD && (m.WithoutManager || name == "") {
			continue
		}
		live, err := m.metadata(ctx, kind, key)
		if err != nil {
			return err
		}
		described := strings.TrimPrefix(key.String(), "/")
		switch {
		case live == nil:
		case isCRD && live.Annotations[plan.ContentDigestAnnotation] == "":
			s.report(&migration.Finding{
				Problem: fmt.Sprintf("the CRD %s belongs to another package manager", described),
				Remedy: fmt.Sprintf(
					"move its packages with `xpkg migrate from-core`, or run `kubectl delete crd %s` if it has no objects", described,
				),
			})
		case !isCRD && live.Labels[labelName] != name:
			label := fmt.Sprintf("kubectl label --overwrite %s %s %s=%s", strings.ToLower(kind.Kind), key.Name, labelName, name)
			if key.Namespace != "" {
				label += " --namespace " + key.Namespace
			}
			s.report(&migration.Finding{
				Problem: fmt.Sprintf("the manager needs the name of the %s %s, which it does not own", kind.Kind, described),
				Remedy: fmt.Sprintf(
					"if it belongs to the manager, run `%s`; otherwise create it again with another name, and delete it", label,
				),
			})
		}
	}
	return nil
}

// refuseManifests fails with MigrationRefused if objects of the manager have the names of objects of users.
func (m *Migration) refuseManifests(ctx context.Context, manifests []bootstrap.Object) error {
	s := &snapshot{}
	if err := m.checkManifests(ctx, s, manifests); err != nil {
		return err
	}
	return migration.Refuse(s.problems)
}

// labelName is the label of the objects of the manager.
const labelName = "app.kubernetes.io/name"

// metadata returns the metadata of an object, or nil if it does not exist.
func (m *Migration) metadata(
	ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey,
) (*metav1.PartialObjectMetadata, error) {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(kind)
	err := m.Client.Get(ctx, key, o)
	switch {
	case err == nil:
		return o, nil
	case ignoreNotServed(err) == nil:
		return nil, nil
	}
	return nil, fmt.Errorf("read %s %s: %w", kind.Kind, key.Name, err)
}

// sharedProvider returns the name of the Provider for the PackageInstalls of a repository: the first one that no other
// package has.
func (s *snapshot) sharedProvider(ref oci.Reference) string {
	names := controllers.SharedProviderNames(ref)
	for _, name := range names {
		p := s.providers[name]
		if p != nil && !oci.SameRepository(p.Spec.Package, ref.Name()) {
			continue
		}
		if !slices.ContainsFunc(
			s.installs, func(in *install) bool { return in.provider == name && !in.reference.SameRepository(ref) },
		) {
			return name
		}
	}
	return names[0] // The conflict is reported.
}

// replacement returns the replacement of the package of an install object, and the text that it replaces: the package
// or the CRD as the object names it, or the reference in a plan.
func (m *Migration) replacement(in *install) (from, to string) {
	names := []string{in.spec.Package, in.spec.CRD}
	if in.spec.Package != "" {
		if ref, err := (controllers.Options{}).Reference(in.spec.Source, in.spec.Package); err == nil {
			names = append(names, ref.String())
		}
	}
	for _, name := range names {
		if to := m.Replacements[name]; name != "" && to != "" {
			return name, to
		}
	}
	return "", ""
}

// unusedReplacements returns a problem for each replacement that applies to no install object, and that no object has
// already.
func (m *Migration) unusedReplacements(s *snapshot) []migration.Finding {
	var out []migration.Finding
	for _, from := range slices.Sorted(maps.Keys(m.Replacements)) {
		done := slices.ContainsFunc(s.installs, func(in *install) bool { return in.spec.Package == m.Replacements[from] })
		if !s.replaced[from] && !done {
			out = append(out, migration.Finding{
				Problem: fmt.Sprintf("no install object has the package or the CRD %s, which the file of --replace replaces", from),
				Remedy:  "write it as in the spec of the object, or as the plan names it",
			})
		}
	}
	return out
}

// installedBy returns the value of the annotation that names the install object on its Provider.
func (in *install) installedBy() string { return in.target() + "/" + in.namespace + "/" + in.name }

// findings returns the reasons that prevent the migration.
func (s *snapshot) findings() []migration.Finding {
	out := s.problems
	byCRD, byProvider := map[string]*install{}, map[string]*install{}
	for _, in := range s.installs {
		for _, crd := range in.crds {
			other := byCRD[crd.Name]
			if other != nil && other.provider != in.provider {
				out = append(out, migration.Finding{
					Problem: fmt.Sprintf("%s and %s both have the CRD %s", other.describe(), in.describe(), crd.Name),
					Remedy:  "delete one of them",
				})
			}
			byCRD[crd.Name] = in
		}
		other := byProvider[in.provider]
		if other != nil && other.reference != in.reference {
			out = append(out, migration.Finding{
				Problem: fmt.Sprintf("%s and %s have different versions of one package", other.describe(), in.describe()),
				Remedy:  "use the same version in all namespaces",
			})
		}
		byProvider[in.provider] = in
	}
	if len(s.installs) == 0 && len(s.managers) == 0 && !s.converted {
		out = append(out, migration.Finding{
			Problem: "the cluster has neither install objects nor a package manager of the first generation in the namespace " +
				s.namespace,
			Remedy: "name the namespace with --namespace",
		})
	}
	return out
}

// otherNamespaces returns the namespaces besides that of the manager that have objects for the whole cluster.
func (s *snapshot) otherNamespaces() []string {
	var out []string
	for _, in := range s.installs {
		if in.isCluster() && in.namespace != s.namespace {
			out = append(out, in.namespace)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
