package crossplane

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// ErrForeignManager is the code for a cluster in which Crossplane core would write the same objects.
var ErrForeignManager = errcode.Code{
	Name: "ForeignManager", Class: errcode.Conflict,
	Cause: "Crossplane core runs in the namespace of the manager and would write the same objects, so the manager writes nothing.",
	Fix: "Follow the message. `xpkg bootstrap --beside-core --core-values` prints the values for the Helm chart of Crossplane, and " +
		"`xpkg bootstrap --beside-core` the manifests of the manager with the policy that prevents core from writing packages.",
}

const (
	// RBACDeploymentName is the name of the Deployment of Crossplane's RBAC manager.
	RBACDeploymentName = "crossplane-rbac-manager"
	// ExternalRuntime is the argument of a core that runs no package runtimes.
	ExternalRuntime = runtimeFlag + "=" + external
	runtimeFlag     = "--package-runtime"
	runtimeEnv      = "PACKAGE_RUNTIME"
	external        = "External"
	// recheck is the time for which a failed check is cached. A successful one is cached for maxAge.
	recheck = 10 * time.Second
)

// Core describes the Crossplane core of a namespace.
type Core struct {
	// Runs reports that a core with a package manager for pkg.crossplane.io has replicas, and RunsRBACManager that its
	// RBAC manager has.
	Runs, RunsRBACManager bool
	// RunsRuntimes reports that core writes the Deployments of packages.
	RunsRuntimes bool
	// Account is the ServiceAccount of core.
	Account types.NamespacedName
	// Writes reports that core may write packages.
	Writes bool
}

// Role describes the responsibilities of a manager beside core.
type Role struct {
	// Permissions reports that the manager grants permissions to runtimes, and Runtimes that it writes
	// their Deployments.
	Permissions, Runtimes bool
}

// Conflict is a reason why a manager and core would write the same objects.
type Conflict struct {
	Problem string
	// Remedy is an imperative clause without a full stop.
	Remedy string
}

// String returns the problem and its remedy.
func (c Conflict) String() string { return c.Problem + ": " + c.Remedy }

// Conflicts returns the conflicts of core with a manager. Without core there are none.
func (c Core) Conflicts(r Role) []Conflict {
	if !c.Runs {
		return nil
	}
	var out []Conflict
	if c.Writes {
		out = append(out, Conflict{
			Problem: fmt.Sprintf("the ServiceAccount %s may write packages", c.Account),
			Remedy:  fmt.Sprintf("apply the manifests of `xpkg bootstrap --beside-core --core-account %s`", c.Account),
		})
	}
	if c.RunsRuntimes && r.Runtimes {
		out = append(out, Conflict{Problem: "core runs package runtimes", Remedy: "start it with " + ExternalRuntime})
	}
	if c.RunsRBACManager && r.Permissions {
		out = append(out, Conflict{
			Problem: "the RBAC manager of Crossplane runs",
			Remedy: "set rbacManager.replicas=0 in its chart, or run " +
				wording.RestartClusterManager("--package-permissions=Ignore"),
		})
	}
	return out
}

func join(conflicts []Conflict) string {
	var out []string
	for _, c := range conflicts {
		out = append(out, c.String())
	}
	return strings.Join(out, "; ")
}

// Guard checks that Crossplane core and the manager do not write the same objects.
type Guard struct {
	// Reader reads from the API server, and Client creates reviews of permissions.
	Reader    client.Reader
	Client    client.Client
	Namespace string
	Role      Role
	Now       func() time.Time

	mu        sync.Mutex
	err       error
	checkedAt time.Time
}

// Check fails with ForeignManager while core and the manager would write the same objects. A success is
// used for a minute, and a failure for ten seconds.
func (g *Guard) Check(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	used := maxAge
	if g.err != nil {
		used = recheck
	}
	if !g.checkedAt.IsZero() && g.Now().Sub(g.checkedAt) < used {
		return g.err
	}
	core, err := ReadCore(ctx, g.Reader, g.Client, g.Namespace)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	switch conflicts := core.Conflicts(g.Role); {
	case err != nil:
		g.err = ErrForeignManager.New(
			err, "cannot determine whether Crossplane in the namespace %s writes packages", g.Namespace,
		)
	case len(conflicts) > 0:
		g.err = ErrForeignManager.New(
			nil, "Crossplane in the namespace %s would write the same objects: %s", g.Namespace, join(conflicts),
		)
	default:
		g.err = nil
	}
	g.checkedAt = g.Now()
	return g.err
}

// ReadCore reads the Crossplane core of a namespace.
func ReadCore(ctx context.Context, reader client.Reader, c client.Client, namespace string) (Core, error) {
	var d, rbac appsv1.Deployment
	if err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: DeploymentName}, &d); err != nil {
		return Core{}, client.IgnoreNotFound(err)
	}
	if err := reader.Get(
		ctx, types.NamespacedName{Namespace: namespace, Name: RBACDeploymentName}, &rbac,
	); client.IgnoreNotFound(err) != nil {
		return Core{}, err
	}
	core := Core{
		Runs: runs(d) && !isFirstGeneration(d), RunsRBACManager: runs(rbac), RunsRuntimes: runsRuntimes(d),
		Account: types.NamespacedName{Namespace: namespace, Name: d.Spec.Template.Spec.ServiceAccountName},
	}
	if !core.Runs {
		return core, nil
	}
	fenced, err := IsFenced(ctx, reader, core.Account)
	if err != nil {
		return core, err
	}
	if !fenced {
		core.Writes, err = mayWrite(ctx, c, core.Account)
	}
	return core, err
}

// firstManager is the first version of core with a package manager for pkg.crossplane.io. Earlier ones had the package
// manager of the first generation in a Deployment of its own.
var firstManager = version.Parse("v0.14.0-0")

// isFirstGeneration reports whether the Deployment of core is of a version that does not know pkg.crossplane.io.
func isFirstGeneration(d appsv1.Deployment) bool {
	v := version.Parse(versionOf(d))
	return v.Usable() && v.Compare(&firstManager) < 0
}

// runs reports whether a Deployment exists and has replicas.
func runs(d appsv1.Deployment) bool {
	return d.Name != "" && ptr.Deref(d.Spec.Replicas, 1) > 0
}

// runsRuntimes reports whether core writes Deployments for Providers or Functions.
func runsRuntimes(d appsv1.Deployment) bool {
	value := ""
	for _, c := range d.Spec.Template.Spec.Containers {
		for i, arg := range c.Args {
			if v, ok := strings.CutPrefix(arg, runtimeFlag+"="); ok {
				value = v
			} else if arg == runtimeFlag && i+1 < len(c.Args) {
				value = c.Args[i+1]
			}
		}
		if i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == runtimeEnv }); i >= 0 && value == "" {
			value = c.Env[i].Value
		}
	}
	if value == external {
		return false
	}
	byKind := strings.Split(value, ";")
	return !slices.Contains(byKind, "Provider="+external) || !slices.Contains(byKind, "Function="+external)
}

// IsFenced reports whether the policy of the fence denies the writes of an account.
func IsFenced(ctx context.Context, reader client.Reader, account types.NamespacedName) (bool, error) {
	wantPolicy, wantBinding := Fence(account)
	var policy admissionv1.ValidatingAdmissionPolicy
	if err := reader.Get(ctx, types.NamespacedName{Name: FenceName}, &policy); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	var binding admissionv1.ValidatingAdmissionPolicyBinding
	if err := reader.Get(ctx, types.NamespacedName{Name: FenceName}, &binding); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	covered := slices.ContainsFunc(policy.Spec.MatchConditions, func(c admissionv1.MatchCondition) bool {
		return strings.Contains(c.Expression, `"`+UserName(account)+`"`)
	})
	// The policy may cover further accounts.
	wantPolicy.Spec.MatchConditions = policy.Spec.MatchConditions
	return covered && len(policy.Spec.MatchConditions) == 1 && equality.Semantic.DeepEqual(policy.Spec, wantPolicy.Spec) &&
		equality.Semantic.DeepEqual(binding.Spec, wantBinding.Spec), nil
}

// mayWrite reports whether RBAC lets an account write packages.
func mayWrite(ctx context.Context, c client.Client, account types.NamespacedName) (bool, error) {
	for _, verb := range []string{"create", "update", "delete", "patch"} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:   UserName(account),
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + account.Namespace, "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: verb, Group: packageGroup, Version: "v1", Resource: "providerrevisions",
			},
		}}
		if err := c.Create(ctx, review); err != nil || review.Status.Allowed {
			return review.Status.Allowed, err
		}
	}
	return false, nil
}
