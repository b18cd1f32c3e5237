package permission

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/rights"
)

// Held knows what the manager may give to others: what it holds itself, unless it may
// give anything.
type Held struct {
	Client client.Client
	Log    *slog.Logger

	mu sync.Mutex
	// identity is who the manager is to the API server, once that was asked.
	identity *rbacv1.Subject
}

// Check fails with PermissionMissing when the manager may not give the rights of a
// revision, whose roles are in the whole cluster and in a namespace.
func (h *Held) Check(ctx context.Context, set rights.Set, namespace string) error {
	lack, err := h.lacks(ctx, set, namespace)
	if err != nil {
		return err
	}
	return h.missing(ctx, lack)
}

// Explain turns the refusal of a role into PermissionMissing, where that is what it
// is: the manager may have lost a right since it was checked.
func (h *Held) Explain(ctx context.Context, set rights.Set, namespace string, refusal error) error {
	if err := h.Check(ctx, set, namespace); err != nil {
		return err
	}
	return refusal
}

func (h *Held) missing(ctx context.Context, lack rights.Lack) error {
	if len(lack.Rules()) == 0 {
		return nil
	}
	who, err := h.subject(ctx)
	if err != nil {
		return err
	}
	if text, err := lack.YAML(who); err == nil {
		h.Log.InfoContext(ctx, "permissions are missing that a package needs: an administrator can apply these", "yaml", string(text))
	}
	return lack.Err(who)
}

// lacks compares what a set gives with what the manager holds.
func (h *Held) lacks(ctx context.Context, set rights.Set, namespace string) (rights.Lack, error) {
	lack := rights.Lack{Namespace: namespace}
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

// lacksIn gives the rules that the manager may not give in a namespace, or in the
// whole cluster. Who may escalate and bind may give anything, also where an authorizer
// other than RBAC says so; otherwise the API server compares rules, and so does this.
func (h *Held) lacksIn(ctx context.Context, namespace, roles string, want []rbacv1.PolicyRule) ([]rbacv1.PolicyRule, error) {
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
	return rights.Missing(have, want), err
}

func (h *Held) may(ctx context.Context, namespace, resource, verb string) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Group: rbacv1.GroupName, Resource: resource, Verb: verb},
	}}
	if err := h.Client.Create(ctx, review); err != nil {
		return false, fmt.Errorf("ask whether the manager may %s %s: %w", verb, resource, err)
	}
	return review.Status.Allowed, nil
}

// nowhere is no namespace: none has such a name, and nobody is given anything in it.
// What somebody may do there they may do in the whole cluster.
const nowhere = "*"

// rules are those of the manager. An API server calls them incomplete as soon as one
// of its authorizers cannot list any, such as that of nodes; those of RBAC are all
// there, and no others count for who may give what.
func (h *Held) rules(ctx context.Context, namespace string) ([]rbacv1.PolicyRule, error) {
	if namespace == "" {
		namespace = nowhere
	}
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	if err := h.Client.Create(ctx, review); err != nil {
		return nil, fmt.Errorf("ask what the manager may do: %w", err)
	}
	var out []rbacv1.PolicyRule
	for _, r := range review.Status.ResourceRules {
		out = append(out, rbacv1.PolicyRule{Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames})
	}
	for _, r := range review.Status.NonResourceRules {
		out = append(out, rbacv1.PolicyRule{Verbs: r.Verbs, NonResourceURLs: r.NonResourceURLs})
	}
	return out, nil
}

// subject is who the manager is to the API server.
func (h *Held) subject(ctx context.Context) (rbacv1.Subject, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.identity != nil {
		return *h.identity, nil
	}
	review := &authenticationv1.SelfSubjectReview{}
	if err := h.Client.Create(ctx, review); err != nil {
		return rbacv1.Subject{}, fmt.Errorf("ask who the manager is: %w", err)
	}
	h.identity = new(subjectOf(review.Status.UserInfo.Username))
	return *h.identity, nil
}

// subjectOf is a user as roles are bound to it.
func subjectOf(user string) rbacv1.Subject {
	if rest, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		if namespace, name, ok := strings.Cut(rest, ":"); ok {
			return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
		}
	}
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}
}
