package planner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// xrd returns an XRD of the group with a composite resource, and a claim unless its plural is empty.
func xrd(group, kind, plural, claimKind, claimPlural string) string {
	claim := ""
	if claimPlural != "" {
		claim = fmt.Sprintf("  claimNames: {kind: %s, plural: %s}\n", claimKind, claimPlural)
	}
	return fmt.Sprintf(`---
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: %s.%s}
spec:
  group: %s
  names: {kind: %s, plural: %s}
%s  versions:
  - {name: v1, served: true, referenceable: true, schema: {openAPIV3Schema: {type: object}}}
`, plural, group, group, kind, plural, claim)
}

func configuration(name string, objects ...string) string {
	return fmt.Sprintf(
		"apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata:\n  name: %s\nspec: {}\n", name,
	) + strings.Join(objects, "")
}

// An XRD whose composite resource or claim is a kind of the CRD of another package, and a CRD that an XRD of another
// package defines, are refused in the plan and by the manager before the first write. Crossplane would never establish
// the XRD.
func TestXRDsAndCRDsOfOneKindAreRefused(t *testing.T) {
	const group = "kinds.preview.test"
	provide := func(kind string) string { return provider("p", "", crd(group, kind, "one")) }
	for name, tc := range map[string]struct {
		holder, comer string
		// cause is the code of both, and plan and manager are parts of the messages.
		cause, plan, manager string
	}{
		"composite resource": {
			provide("Ship"), configuration("c", xrd(group, "Ship", "ships", "", "")), "ForeignOwner",
			"CompositeResourceDefinition ships." + group + " defines CustomResourceDefinition ships." + group +
				", which belongs to Provider/",
			"CustomResourceDefinition ships." + group + ", which Crossplane creates for the package, belongs to Provider/",
		},
		"claim": {
			provide("Boat"), configuration("c", xrd(group, "XBoat", "xboats", "Boat", "boats")), "ForeignOwner",
			"CompositeResourceDefinition xboats." + group + " defines CustomResourceDefinition boats." + group +
				", which belongs to Provider/",
			"CustomResourceDefinition boats." + group + ", which Crossplane creates for the package, belongs to Provider/",
		},
		"kind of a CRD": {
			provide("Raft"), configuration("c", xrd(group, "Raft", "xrafts", "", "")), "NameTaken",
			"CompositeResourceDefinition xrafts." + group + ": the name Raft belongs to rafts of the same group",
			"the name Raft belongs to rafts",
		},
		"CRD of a claim": {
			configuration("c", xrd(group, "XSail", "xsails", "Sail", "sails")), provide("Sail"), "ForeignOwner",
			"CustomResourceDefinition sails." + group + ": CompositeResourceDefinition xsails." + group +
				" defines the resource sails, and belongs to Configuration/",
			"CustomResourceDefinition sails." + group + " belongs to Configuration/",
		},
		"kind of an XRD": {
			configuration("c", xrd(group, "Mast", "xmasts", "", "")), provide("Mast"), "NameTaken",
			"CustomResourceDefinition masts." + group + ": the name Mast belongs to CompositeResourceDefinition xmasts." + group,
			"the name Mast belongs to CompositeResourceDefinition",
		},
		"claims of two XRDs": {
			configuration("c", xrd(group, "XRope", "xropes", "Rope", "ropes")),
			configuration("d", xrd(group, "YRope", "yropes", "Rope", "ropes")), "ForeignOwner",
			"CompositeResourceDefinition yropes." + group + ": CompositeResourceDefinition xropes." + group +
				" defines the resource ropes, and belongs to Configuration/",
			"CustomResourceDefinition ropes." + group + ", which Crossplane creates for the package, belongs to Configuration/",
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, s := env.New(t), newFakeContent()
			seen := &env.Audit{}
			defer runManager(t, seen.Wrap(e.Config), s).Stop()
			c, pl := e.Client, newPlanner(t, e.Config, s)
			packageOf := func(role, stream string) v1.Package {
				kind := v1.ProviderKind
				if strings.Contains(stream, "kind: Configuration\n") {
					kind = v1.ConfigurationKind
				}
				p := v1.NewPackage(kind)
				p.SetName(strings.ToLower(strings.ReplaceAll(name, " ", "-")) + "-" + role)
				p.PackageSpec().Package = "registry.example.com/kinds/" + p.GetName() + ":v1"
				s.put(p.PackageSpec().Package, stream)
				return p
			}
			holder, comer := packageOf("holder", tc.holder), packageOf("comer", tc.comer)
			e.CreateTemporary(t, holder)
			settled(t, c, holder)
			planned := install(t, pl, comer)
			if err := planned.RefusalError(); err == nil || errcode.From(err).Code.Name != tc.cause ||
				!strings.Contains(err.Error(), tc.plan) {
				t.Fatalf("the plan is refused with %v, want %s: %s", err, tc.cause, tc.plan)
			}
			seen.Reset("")
			e.CreateTemporary(t, comer)
			e.WaitCondition(t, comer, v1.TypeHealthy, corev1.ConditionFalse, tc.cause+": ")
			if message := comer.GetCondition(v1.TypeHealthy).Message; !strings.Contains(message, tc.manager) {
				t.Errorf("the manager refuses with %q, want %q", message, tc.manager)
			}
			planned.Objects.Changes = nil
			wantWrites(t, seen, planned)
		})
	}
}

// The plan of a Configuration names the roles of its composite resources that the manager creates.
func TestPlanNamesTheRolesOfComposites(t *testing.T) {
	e, s := env.New(t), newFakeContent()
	const group, at = "roles.preview.test", "registry.example.com/roles/fleet:"
	s.put(at+"v1", configuration("fleet", xrd(group, "XShip", "xships", "", "")))
	s.put(at+"v2", configuration("fleet", xrd(group, "XShip", "xships", "", ""), xrd(group, "XBoat", "xboats", "", "")))
	defer (&env.Env{
		Config: e.Config,
	}).RunManager(t, controller.Options{Content: s, Permissions: &controller.Permissions{}}).Stop()
	c, pl := e.Client, newPlanner(t, e.Config, s)
	roles := func(xrd string) (out []string) {
		for _, to := range []string{"browse", "crossplane", "edit", "view"} {
			out = append(out, "crossplane:composite:"+xrd+"."+group+":aggregate-to-"+to)
		}
		return out
	}
	p := v1.NewPackage(v1.ConfigurationKind)
	p.SetName("roles-fleet")
	p.PackageSpec().Package = at + "v1"
	planned := install(t, pl, p)
	if planned.Permissions == nil || !slices.Equal(planned.Permissions.CompositeRoles, roles("xships")) {
		t.Fatalf("the permissions of the first version: %+v", planned.Permissions)
	}
	e.CreateTemporary(t, p)
	settled(t, c, p)
	for _, role := range planned.Permissions.CompositeRoles {
		wait.Until(t, limit, "the role "+role, func() (string, bool) {
			err := c.Get(t.Context(), client.ObjectKey{Name: role}, &rbacv1.ClusterRole{})
			return fmt.Sprint(err), err == nil
		})
	}
	p.PackageSpec().Package = at + "v2"
	planned = install(t, pl, p)
	if planned.Permissions == nil || !slices.Equal(planned.Permissions.CompositeRoles, roles("xboats")) {
		t.Errorf("the permissions of the second version: %+v", planned.Permissions)
	}
}
