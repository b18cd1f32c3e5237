package fromcore

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/migration"
)

// waitEnforced waits until the API server denies core the writes of packages: an API server enforces a new policy with
// a short delay. It repeats a write as core that changes nothing. A user who may not impersonate core does not wait:
// the next steps take longer than the delay.
func (m *Migration) waitEnforced(ctx context.Context, account types.NamespacedName, report migration.Report) error {
	core, err := m.impersonate(ctx, account)
	if err != nil || core == nil {
		return err
	}
	err = migration.Wait(ctx, pollInterval, report, func(ctx context.Context) (string, error) {
		probe := &v1.Configuration{ObjectMeta: metav1.ObjectMeta{GenerateName: "xpkg-probe-"}}
		probe.Spec.Package = "registry.invalid/probe:v1"
		err := core.Create(ctx, probe, client.DryRunAll)
		if apierrors.IsForbidden(err) {
			return "", nil
		}
		if err != nil {
			return "", fmt.Errorf("try a write as the ServiceAccount %s: %w", account, err)
		}
		return fmt.Sprintf("the API server does not enforce the policy %s yet", crossplane.FenceName), nil
	})
	return migration.Explain(err, "Inspect it with `kubectl describe validatingadmissionpolicy %s`.", crossplane.FenceName)
}

// impersonate returns a client with the identity of a ServiceAccount, or nil if the user may not impersonate it.
func (m *Migration) impersonate(ctx context.Context, account types.NamespacedName) (client.Client, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "impersonate", Resource: "serviceaccounts", Namespace: account.Namespace, Name: account.Name,
		},
	}}
	if err := m.Client.Create(ctx, review); err != nil {
		return nil, fmt.Errorf("check the permission to impersonate the ServiceAccount %s: %w", account, err)
	}
	if !review.Status.Allowed {
		return nil, nil
	}
	cfg := rest.CopyConfig(m.Config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: crossplane.UserName(account)}
	return client.New(cfg, client.Options{Scheme: m.Client.Scheme(), Mapper: m.Client.RESTMapper()})
}
