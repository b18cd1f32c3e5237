package crossplane

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// running returns a Deployment of core, or of its RBAC manager, with arguments.
func running(name string, args ...string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	d.Spec.Template.Spec.ServiceAccountName = "crossplane"
	d.Spec.Template.Spec.Containers = []corev1.Container{{Args: args}}
	return d
}

func stopped(d *appsv1.Deployment) *appsv1.Deployment {
	d.Spec.Replicas = new(int32(0))
	return d
}

func withEnv(d *appsv1.Deployment, name, value string) *appsv1.Deployment {
	d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: name, Value: value}}
	return d
}

func withImage(d *appsv1.Deployment, image string) *appsv1.Deployment {
	d.Spec.Template.Spec.Containers[0].Image = image
	return d
}

// clusterWith returns a client of a cluster with objects, in which RBAC lets every account write packages,
// or none.
func clusterWith(t *testing.T, allowed bool, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	err := errors.Join(appsv1.AddToScheme(scheme), admissionv1.AddToScheme(scheme), authorizationv1.AddToScheme(scheme))
	if err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			o.(*authorizationv1.SubjectAccessReview).Status.Allowed = allowed
			return nil
		},
	}).Build()
}

func TestGuardFailsWhileCoreWouldWriteTheSameObjects(t *testing.T) {
	external, full := "start --package-runtime=External", Role{Permissions: true, Runtimes: true}
	core := func(args string) *appsv1.Deployment { return running(DeploymentName, strings.Fields(args)...) }
	fence := func(change func(
		*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding,
	)) []client.Object {
		policy, binding := Fence(types.NamespacedName{Namespace: "other", Name: "core"}, types.NamespacedName{
			Namespace: namespace, Name: "crossplane",
		})
		if change != nil {
			change(policy, binding)
		}
		return []client.Object{policy, binding}
	}
	fenced := fence(nil)
	for name, c := range map[string]struct {
		objects []client.Object
		allowed bool
		role    Role
		// conflicts are parts of the message; without any the check succeeds.
		conflicts []string
	}{
		"no core":               {nil, true, full, nil},
		"core without replicas": {[]client.Object{stopped(core("start"))}, true, full, nil},
		"core as its chart installs it": {[]client.Object{core("start"), running(RBACDeploymentName)}, true, full, []string{
			"crossplane-system/crossplane may write packages", "--package-runtime=External", "rbacManager.replicas=0",
		}},
		"fenced by the policy": {append(fence(nil), core(external)), true, full, nil},
		"fenced by RBAC":       {[]client.Object{core(external)}, false, full, nil},
		"not fenced":           {[]client.Object{core(external)}, true, full, []string{"may write packages"}},
		"a policy without its binding": {[]client.Object{core(external), fenced[0]}, true, full, []string{
			"may write packages",
		}},
		"a policy for another account": {
			append(fence(func(p *admissionv1.ValidatingAdmissionPolicy, _ *admissionv1.ValidatingAdmissionPolicyBinding) {
				p.Spec.MatchConditions[0].Expression = strings.Replace(
					p.Spec.MatchConditions[0].Expression, ":crossplane\"", ":crossplane2\"", 1,
				)
			}), core(external)), true, full, []string{"may write packages"}},
		"a policy that allows updates": {
			append(fence(func(p *admissionv1.ValidatingAdmissionPolicy, _ *admissionv1.ValidatingAdmissionPolicyBinding) {
				p.Spec.Validations[0].Expression = "request.operation == 'UPDATE'"
			}), core(external)), true, full, []string{"may write packages"}},
		"a binding that only audits": {
			append(fence(func(_ *admissionv1.ValidatingAdmissionPolicy, b *admissionv1.ValidatingAdmissionPolicyBinding) {
				b.Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Audit}
			}), core(external)), true, full, []string{"may write packages"}},
		"two arguments": {
			[]client.Object{core("start --package-runtime External")}, false, full, nil,
		},
		"a runtime for each kind": {
			[]client.Object{core("start --package-runtime=Provider=External;Function=External")}, false, full, nil,
		},
		"runtimes of Functions": {
			[]client.Object{core("start --package-runtime=Provider=External")}, false, full, []string{"runs package runtimes"},
		},
		"a variable": {
			[]client.Object{withEnv(core("start"), runtimeEnv, "External")}, false, full, nil,
		},
		"core runs the runtimes": {[]client.Object{core("start")}, false, Role{Permissions: true}, nil},
		"the RBAC manager grants the permissions": {
			[]client.Object{core(external), running(RBACDeploymentName)}, false, Role{Runtimes: true}, nil,
		},
		"both grant permissions": {
			[]client.Object{core(external), running(RBACDeploymentName)}, false, full, []string{"RBAC manager"},
		},
		"a core of the first generation": {
			[]client.Object{withImage(core("--debug"), "crossplane/crossplane:v0.12.0")}, true, full, nil,
		},
		"a later core with a version": {
			[]client.Object{withImage(core("start"), "crossplane/crossplane:v0.14.0")}, true, full,
			[]string{"may write packages", "runs package runtimes"},
		},
		"a core without a semantic version": {
			[]client.Object{withImage(core("--debug"), "crossplane/crossplane:master")}, true, full,
			[]string{"may write packages"},
		},
		"an RBAC manager without replicas": {
			[]client.Object{core(external), stopped(running(RBACDeploymentName))}, false, full, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := clusterWith(t, c.allowed, c.objects...)
			g := &Guard{Reader: cluster, Client: cluster, Namespace: namespace, Role: c.role, Now: time.Now}
			err := g.Check(t.Context())
			if (err != nil) != (len(c.conflicts) > 0) || err != nil && !errors.Is(err, ErrForeignManager) {
				t.Fatalf("got %v, want an error: %t", err, len(c.conflicts) > 0)
			}
			for _, part := range c.conflicts {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not contain %q", err, part)
				}
			}
		})
	}
}

// A success is used longer than a failure, so that a remedy takes effect soon.
func TestGuardChecksAgain(t *testing.T) {
	now := time.Unix(0, 0)
	allowed := clusterWith(t, true, running(DeploymentName))
	denied := clusterWith(t, false, running(DeploymentName, "--package-runtime=External"))
	g := &Guard{
		Reader: allowed, Client: allowed, Namespace: namespace, Role: Role{Runtimes: true},
		Now: func() time.Time { return now },
	}
	check := func(want bool, state string) {
		t.Helper()
		if err := g.Check(t.Context()); (err == nil) != want {
			t.Errorf("%s: got %v", state, err)
		}
	}
	check(false, "first check")
	g.Reader, g.Client = denied, denied
	check(false, "failure within its time")
	now = now.Add(recheck)
	check(true, "after the remedy")
	g.Reader, g.Client = allowed, allowed
	now = now.Add(recheck)
	check(true, "success within its time")
	now = now.Add(maxAge)
	check(false, "core without its fence")
}
