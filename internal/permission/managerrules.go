package permission

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/sharedread"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// ManagerRules determines which permissions the manager can grant: the permissions that it holds,
// unless it may escalate.
type ManagerRules struct {
	Client client.Client
	Log    *slog.Logger

	mu sync.Mutex
	// identity is the manager's subject, as reported by the API server.
	identity *rbacv1.Subject
	// reviews are those of each action. A review that denies it fails with errDenied, so that it is not shared later.
	reviews map[action]*sharedread.Read[struct{}]
}

// action is an action on the roles in a namespace, or cluster-wide.
type action struct{ namespace, resource, verb string }

// errDenied is the error of a review that denies an action.
var errDenied = errors.New("denied")

// recentReview is the age of a review that is as good as a new one: the permission can also be lost between a new
// review and the write that needs it, which the API server then denies.
const recentReview = time.Second

// Check fails with PermissionMissing if the manager cannot grant the permissions of a
// revision, cluster-wide and in a namespace.
func (h *ManagerRules) Check(ctx context.Context, set rbac.Set, namespace string) error {
	lack, err := h.lacks(ctx, set, namespace)
	if err != nil {
		return err
	}
	return h.missing(ctx, lack)
}

// Explain converts the denial of a role to PermissionMissing if the manager has lost a
// permission since it was checked.
func (h *ManagerRules) Explain(ctx context.Context, set rbac.Set, namespace string, refusal error) error {
	h.mu.Lock()
	h.reviews = nil
	h.mu.Unlock()
	if err := h.Check(ctx, set, namespace); err != nil {
		return err
	}
	return refusal
}

func (h *ManagerRules) missing(ctx context.Context, lack rbac.Lack) error {
	if len(lack.Rules()) == 0 {
		return nil
	}
	who, err := h.subject(ctx)
	if err != nil {
		return err
	}
	if text, err := lack.YAML(who); err == nil {
		h.Log.InfoContext(
			ctx, "permissions are missing that the manager has to grant: an administrator can apply these", "yaml", string(text),
		)
	}
	return lack.Err(who)
}

// lacks compares the permissions of a set with the permissions of the manager.
func (h *ManagerRules) lacks(ctx context.Context, set rbac.Set, namespace string) (rbac.Lack, error) {
	lack := rbac.Lack{Namespace: namespace}
	var err error
	if want := set.Everywhere(); len(want) > 0 {
		if lack.Everywhere, err = h.lacksIn(ctx, "", "clusterroles", want); err != nil {
			return lack, err
		}
	}
	if want := set.Within(namespace); len(want) > 0 {
		lack.Within, err = h.lacksIn(ctx, namespace, "roles", want)
	}
	return lack, err
}

// lacksIn returns the rules that the manager cannot grant in a namespace, or
// cluster-wide. A manager with the verbs escalate and bind can grant any rule, also if an
// authorizer other than RBAC allows them; otherwise rules are compared as the API server
// does.
func (h *ManagerRules) lacksIn(
	ctx context.Context, namespace, roles string, want []rbacv1.PolicyRule,
) ([]rbacv1.PolicyRule, error) {
	anything := true
	for _, verb := range []string{"escalate", "bind"} {
		may, err := h.may(ctx, namespace, roles, verb)
		if err != nil {
			return nil, err
		}
		anything = anything && may
	}
	if anything {
		return nil, nil
	}
	have, err := h.rules(ctx, namespace)
	return rbac.Missing(have, want), err
}

// may reports whether the manager may take an action. Packages that are installed at the same time share reviews that
// allow it.
func (h *ManagerRules) may(ctx context.Context, namespace, resource, verb string) (bool, error) {
	_, err := h.reviewOf(action{namespace, resource, verb}).
		Get(ctx, recentReview, func(ctx context.Context) (none struct{}, err error) {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: namespace, Group: rbacv1.GroupName, Resource: resource, Verb: verb,
				},
			}}
			if err := h.Client.Create(ctx, review); err != nil {
				return none, fmt.Errorf("determine whether the manager may %s %s: %w", verb, resource, err)
			}
			if !review.Status.Allowed {
				return none, errDenied
			}
			return none, nil
		})
	if errors.Is(err, errDenied) {
		return false, nil
	}
	return err == nil, err
}

// reviewOf returns the shared review of an action.
func (h *ManagerRules) reviewOf(a action) *sharedread.Read[struct{}] {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reviews[a] == nil {
		if h.reviews == nil {
			h.reviews = map[action]*sharedread.Read[struct{}]{}
		}
		h.reviews[a] = &sharedread.Read[struct{}]{}
	}
	return h.reviews[a]
}

// nowhere is an impossible namespace; a rules review for it returns only cluster-wide
// rules.
const nowhere = "*"

// rules returns the rules of the manager. An API server reports them as incomplete if one
// of its authorizers, such as the node authorizer, cannot list rules. The rules of RBAC
// are complete, and only these count for granting.
func (h *ManagerRules) rules(ctx context.Context, namespace string) ([]rbacv1.PolicyRule, error) {
	if namespace == "" {
		namespace = nowhere
	}
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{
		Namespace: namespace,
	}}
	if err := h.Client.Create(ctx, review); err != nil {
		return nil, fmt.Errorf("review the permissions of the manager: %w", err)
	}
	var out []rbacv1.PolicyRule
	for _, r := range review.Status.ResourceRules {
		out = append(out, rbacv1.PolicyRule{
			Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames,
		})
	}
	for _, r := range review.Status.NonResourceRules {
		out = append(out, rbacv1.PolicyRule{Verbs: r.Verbs, NonResourceURLs: r.NonResourceURLs})
	}
	return out, nil
}

// subject returns the identity of the manager at the API server.
func (h *ManagerRules) subject(ctx context.Context) (rbacv1.Subject, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.identity != nil {
		return *h.identity, nil
	}
	review := &authenticationv1.SelfSubjectReview{}
	if err := h.Client.Create(ctx, review); err != nil {
		return rbacv1.Subject{}, fmt.Errorf("determine the identity of the manager: %w", err)
	}
	h.identity = new(subjectOf(review.Status.UserInfo.Username))
	return *h.identity, nil
}

// subjectOf returns a user as the subject of a role binding.
func subjectOf(user string) rbacv1.Subject {
	if rest, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		if namespace, name, ok := strings.Cut(rest, ":"); ok {
			return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
		}
	}
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}
}
