package tocore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/rollout"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// readFence reports whether a fence denies core the writes of packages, and returns the accounts of other installations
// of core that it covers. A fence of which no account can be read counts as the one of this core.
func (m *mover) readFence(ctx context.Context) (fenced bool, others []types.NamespacedName, err error) {
	exists, err := m.fenceExists(ctx)
	if err != nil || !exists {
		return false, nil, err
	}
	all, err := crossplane.FencedAccounts(ctx, m.Client)
	if err != nil {
		return false, nil, fmt.Errorf("read the policy %s: %w", crossplane.FenceName, err)
	}
	others = slices.DeleteFunc(
		slices.Clone(all), func(account types.NamespacedName) bool { return account.Namespace == m.Namespace },
	)
	return len(others) == 0 || len(others) < len(all), others, nil
}

// fenceExists reports whether the policy of the fence or its binding exists.
func (m *mover) fenceExists(ctx context.Context) (bool, error) {
	for _, o := range []client.Object{
		&admissionv1.ValidatingAdmissionPolicyBinding{}, &admissionv1.ValidatingAdmissionPolicy{},
	} {
		err := m.Client.Get(ctx, types.NamespacedName{Name: crossplane.FenceName}, o)
		if err == nil {
			return true, nil
		}
		if !apierrors.IsNotFound(err) {
			return false, fmt.Errorf("read the policy %s: %w", crossplane.FenceName, err)
		}
	}
	return false, nil
}

// enableCore removes the fence, and restores the settings of core and of its RBAC manager. The initialization of core
// may write packages, so the fence is removed first. Core is started again by the change of its settings, and then
// installs its own CRDs of the package API.
func (m *mover) enableCore(ctx context.Context, _ migration.Report) error {
	core := types.NamespacedName{Namespace: m.Namespace, Name: crossplane.DeploymentName}
	if err := m.Client.Get(ctx, core, &appsv1.Deployment{}); apierrors.IsNotFound(err) {
		return migration.ErrNoCore.New(nil, "the namespace %s has no Deployment %s", core.Namespace, core.Name).
			WithDo(
				"Run `helm install crossplane crossplane-stable/crossplane --namespace %s --wait`. Until then, runtimes run and no program manages the packages.",
				m.Namespace,
			)
	}
	if err := m.unfence(ctx); err != nil {
		return err
	}
	if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { return m.restore(ctx, core) }); err != nil {
		return err
	}
	rbac := types.NamespacedName{Namespace: m.Namespace, Name: crossplane.RBACDeploymentName}
	if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { return m.restore(ctx, rbac) }); err != nil {
		return err
	}
	return migration.WaitRollout(ctx, m.Client, core)
}

// unfence lets core write packages. The fence of other installations of core stays.
func (m *mover) unfence(ctx context.Context) error {
	_, others, err := m.readFence(ctx)
	if err != nil {
		return err
	}
	if len(others) > 0 {
		return rollout.Apply(ctx, m.Client, bootstrap.CoreFence(others...), func(string) error { return nil })
	}
	policy, binding := crossplane.Fence()
	for _, o := range []client.Object{binding, policy} {
		if err := client.IgnoreNotFound(m.Client.Delete(ctx, o)); err != nil {
			return fmt.Errorf("delete the policy %s: %w", crossplane.FenceName, err)
		}
	}
	return nil
}

// restore restores the settings that a Deployment of core had before the manager.
func (m *mover) restore(ctx context.Context, name types.NamespacedName) error {
	d := &appsv1.Deployment{}
	if err := m.Client.Get(ctx, name, d); err != nil {
		return client.IgnoreNotFound(err)
	}
	changed, err := crossplane.TakePackages(d)
	if err != nil || !changed {
		return err
	}
	if err := m.Client.Update(ctx, d, client.FieldOwner(plan.FieldManager)); err != nil {
		return fmt.Errorf("restore the settings of Deployment %s: %w", name, err)
	}
	return nil
}

// waitHealthy waits until core has reconciled every package.
func (m *mover) waitHealthy(ctx context.Context, report migration.Report) error {
	return migration.Wait(ctx, m.Poll, report, func(ctx context.Context) (string, error) {
		s, err := m.read(ctx)
		if err != nil {
			return "", err
		}
		return s.unhealthy(), nil
	})
}

// unhealthy describes the packages that core has not made healthy yet.
func (s *snapshot) unhealthy() string {
	var out []string
	for _, f := range s.families {
		if reason := s.unhealthyReason(f); reason != "" {
			out = append(out, f.Name()+": "+reason)
		}
	}
	return strings.Join(out, "; ")
}

// unhealthyReason returns why a package is not healthy in core, or "". The finalizer of core shows that core has
// reconciled the revision; the conditions were reset before.
func (s *snapshot) unhealthyReason(f family) string {
	active := f.Active()
	if active == nil {
		return "no revision is active"
	}
	if !hasFinalizerOfCore(active) {
		return "core has not reconciled the revision " + active.GetName()
	}
	for _, t := range []v1.ConditionType{v1.TypeRevisionHealthy, v1.TypeRuntimeHealthy} {
		c := active.GetCondition(t)
		if t == v1.TypeRuntimeHealthy && (f.RuntimeSpec() == nil || s.runtimeOf(f) != runtime.Deployment) {
			continue
		}
		if c.Status != corev1.ConditionTrue {
			return fmt.Sprintf("%s of %s is %s: %s", t, active.GetName(), c.Status, c.Message)
		}
	}
	if c := f.GetCondition(v1.TypeHealthy); c.Status != corev1.ConditionTrue {
		return fmt.Sprintf("Healthy is %s: %s", c.Status, c.Message)
	}
	return ""
}

func hasFinalizerOfCore(rev v1.PackageRevision) bool {
	return slices.Contains(rev.GetFinalizers(), v1.FinalizerRevision)
}

// resetHealth makes the health of an active revision unknown until core reports it.
func (m *mover) resetHealth(ctx context.Context, f family) error {
	rev := f.Active()
	if rev == nil || hasFinalizerOfCore(rev) || !needsReset(rev) {
		return nil
	}
	message := "The package manager is stopped, and Crossplane core has not reconciled the revision yet."
	next := rev.DeepCopyObject().(v1.PackageRevision)
	next.SetConditions(metav1.NewTime(m.Now()), v1.RevisionUnknownHealth(message))
	if f.RuntimeSpec() != nil {
		next.SetConditions(metav1.NewTime(m.Now()), v1.RuntimeUnknownHealth(message))
	}
	if err := m.Client.Status().Update(ctx, next, client.FieldOwner(plan.FieldManager)); err != nil {
		return fmt.Errorf("write the status of %s: %w", rev.GetName(), err)
	}
	return nil
}

// needsReset reports whether a revision has a health that the manager has reported.
func needsReset(rev v1.PackageRevision) bool {
	return rev.GetCondition(v1.TypeRevisionHealthy).Status == corev1.ConditionTrue
}
