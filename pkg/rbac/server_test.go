package rbac

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// patience is for a machine that is busy with other tests.
const patience = time.Minute

// server is the API server of the tests.
type server struct {
	client.Client
	config *rest.Config
}

func newServer(t *testing.T) server {
	t.Helper()
	config := cluster.Start(t)
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return server{c, config}
}

func (s server) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := s.Create(t.Context(), o); err != nil {
			t.Fatalf("%T %s: %v", o, o.GetName(), err)
		}
	}
}

func (s server) createSet(t *testing.T, set Set) {
	t.Helper()
	for i := range set.ClusterRoles {
		s.create(t, &set.ClusterRoles[i])
	}
	for i := range set.Roles {
		s.create(t, &set.Roles[i])
	}
	for i := range set.ClusterRoleBindings {
		s.create(t, &set.ClusterRoleBindings[i])
	}
	for i := range set.RoleBindings {
		s.create(t, &set.RoleBindings[i])
	}
}

// may asks the API server whether a subject is allowed a grant. The wildcard "*" is asked
// literally: the answer is yes if everything is allowed.
func (s server) may(t *testing.T, who rbacv1.Subject, namespace string, g grant) bool {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:   "system:serviceaccount:" + who.Namespace + ":" + who.Name,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + who.Namespace, "system:authenticated"},
	}}
	if g.url != "" {
		review.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: g.url, Verb: g.verb}
	} else {
		resource, sub, _ := strings.Cut(g.resource, "/")
		review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: g.verb, Group: g.group, Resource: resource, Subresource: sub, Name: g.name,
		}
	}
	if err := s.Create(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}

// The API server allows exactly the permissions in the roles of a revision.
func TestDerivedRolesOnTheAPIServer(t *testing.T) {
	s := newServer(t)
	home, other := "rights-home", "rights-other"
	s.create(t, namespace(home), namespace(other))
	for name, input := range inputs {
		t.Run(name, func(t *testing.T) {
			in := input()
			// The names of the cluster's objects have the revision in them.
			in.Revision, in.Namespace = name+"-0123456789ab", home
			who := account(home, name)
			in.ServiceAccounts = []rbacv1.Subject{who}
			s.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: name}})
			set := Derive(in)
			s.createSet(t, set)

			for _, role := range set.ClusterRoles {
				if strings.HasSuffix(role.Name, suffixSystem) {
					s.allowed(t, who, role.Rules, "", home, other)
				}
			}
			for _, role := range set.Roles {
				if !strings.HasSuffix(role.Name, suffixSystem) {
					continue
				}
				s.allowed(t, who, role.Rules, home)
				s.refused(t, who, other, Missing(systemRulesOf(set), role.Rules))
			}
			s.refused(t, who, "", forbidden(in))
			s.refused(t, who, other, forbidden(in))
			s.refused(t, who, home, forbidden(in))
			if in.Needs == minimal || in.Namespaced {
				s.refused(t, who, other, []rbacv1.PolicyRule{{
					APIGroups: []string{""}, Resources: []string{"secrets", "configmaps"}, Verbs: []string{"get", "list", "create"},
				}})
			}
		})
	}
}

// The groups that the API server serves itself are reserved.
func TestKubernetesGroupsAreReserved(t *testing.T) {
	s := newServer(t)
	d, err := discovery.NewDiscoveryClientForConfig(s.config)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := d.ServerGroups()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups.Groups {
		if !Reserved(schema.GroupResource{Group: g.Name, Resource: "anything"}) {
			t.Errorf("%s is not reserved", g.Name)
		}
	}
}

func systemRulesOf(set Set) []rbacv1.PolicyRule {
	for _, role := range set.ClusterRoles {
		if strings.HasSuffix(role.Name, suffixSystem) {
			return role.Rules
		}
	}
	return nil
}

// forbidden lists permissions that no runtime may have: other packages' resources, more
// than its needs, and every way to obtain further permissions.
func forbidden(in Input) []rbacv1.PolicyRule {
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{"another.example.org"}, Resources: []string{
			"buckets", "buckets/status", "buckets/finalizers",
		}, Verbs: []string{"get", "update", "delete"}},
		{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles", "roles"}, Verbs: []string{
			"create", "update", "escalate", "bind",
		}},
		{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterrolebindings", "rolebindings"}, Verbs: []string{
			"create", "update",
		}},
		{APIGroups: []string{""}, Resources: []string{"users", "groups", "serviceaccounts"}, Verbs: []string{"impersonate"}},
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token", "pods/exec"}, Verbs: []string{"create"}},
		{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{
			"create", "update", "delete",
		}},
		{APIGroups: []string{"pkg.crossplane.io"}, Resources: []string{"providers", "providerrevisions"}, Verbs: []string{
			"create", "update",
		}},
		{NonResourceURLs: []string{"/logs"}, Verbs: []string{"get"}},
	}
	if in.Kind == Function {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{
			"get",
		}})
	}
	for _, t := range in.Defined {
		rules = append(rules,
			rbacv1.PolicyRule{APIGroups: []string{t.Group}, Resources: []string{t.Resource}, Verbs: []string{
				"delete", "deletecollection", "*",
			}},
			rbacv1.PolicyRule{APIGroups: []string{t.Group}, Resources: []string{t.Resource + "/finalizers"}, Verbs: []string{
				"patch",
			}},
		)
	}
	return rules
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// allowed waits until each grant is effective: the API server observes roles with a
// delay.
func (s server) allowed(t *testing.T, who rbacv1.Subject, rules []rbacv1.PolicyRule, namespaces ...string) {
	t.Helper()
	for _, rule := range rules {
		for _, g := range grants(rule) {
			for _, ns := range namespaces {
				wait.Until(t, patience, fmt.Sprintf("%s may do %+v in %q", who.Name, g, ns), func() (string, bool) {
					ok := s.may(t, who, ns, g)
					return "no", ok
				})
			}
		}
	}
}

func (s server) refused(t *testing.T, who rbacv1.Subject, namespace string, rules []rbacv1.PolicyRule) {
	t.Helper()
	for _, rule := range rules {
		for _, g := range grants(rule) {
			if s.may(t, who, namespace, g) {
				t.Errorf("%s may do %+v in %q", who.Name, g, namespace)
			}
		}
	}
}

// Missing returns exactly the rules with which the API server denies a role, and a
// subject with the manifest of YAML may create and bind the role.
func TestMissingAgreesWithTheAPIServer(t *testing.T) {
	s := newServer(t)
	random := rand.New(rand.NewPCG(17, 4))
	refusals := 0
	for i := range 60 {
		name := fmt.Sprintf("xpkg-rights-%d", i)
		who := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
		have := append(powerless(random),
			rbacv1.PolicyRule{
				APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles", "clusterrolebindings"},
				Verbs: []string{"create"},
			})
		s.grant(t, who, name, have)
		user := s.as(t, name)
		want := randomRules(random)
		if i%3 == 0 {
			want = partOf(random, have)
		}
		missing := Missing(have, want)
		role := func() *rbacv1.ClusterRole {
			return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name + "-new"}, Rules: want}
		}

		err := user.Create(t.Context(), role(), client.DryRunAll)
		if refused := apierrors.IsForbidden(err); refused != (len(missing) > 0) {
			t.Fatalf("have %+v\nwant %+v\nmissing %+v\nthe API server says %v", have, want, missing, err)
		}
		if len(missing) > 0 {
			refusals++
			if diff := cmp.Diff(canonical(refusalRules(t, err)), missing); diff != "" {
				t.Errorf("have %+v\nwant %+v\n-API server +ours:\n%s", have, want, diff)
			}
			s.apply(t, missing, who)
		}
		wait.Until(t, patience, "the role can be created", func() (string, bool) {
			err := user.Create(t.Context(), role(), client.DryRunAll)
			return fmt.Sprint(err), err == nil
		})
		s.create(t, role())
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-new"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name + "-new"},
			Subjects:   []rbacv1.Subject{who},
		}
		wait.Until(t, patience, "the role can be bound", func() (string, bool) {
			err := user.Create(t.Context(), binding.DeepCopy(), client.DryRunAll)
			return fmt.Sprint(err), err == nil
		})
	}
	if refusals == 0 || refusals == 60 {
		t.Errorf("%d refusals show nothing", refusals)
	}
}

// randomRules use few words, so that some of them cover others.
func randomRules(random *rand.Rand) []rbacv1.PolicyRule {
	pick := func(words ...string) []string {
		random.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
		return words[:1+random.IntN(2)]
	}
	rules := make([]rbacv1.PolicyRule, 1+random.IntN(3))
	for i := range rules {
		rules[i].Verbs = pick("get", "list", "*", "update")
		if random.IntN(5) == 0 {
			rules[i].NonResourceURLs = pick("/x", "/x/y", "/x/*", "/x*")
			continue
		}
		rules[i].APIGroups = pick("a.example.org", "b.example.org", "*")
		rules[i].Resources = pick("r", "s", "r/status", "*/status", "*")
		if random.IntN(3) == 0 {
			rules[i].ResourceNames = pick("n", "m", "o")
		}
	}
	return rules
}

// powerless are random rules without the verbs that turn the API server's check
// off.
func powerless(random *rand.Rand) []rbacv1.PolicyRule {
	escalate := []rbacv1.PolicyRule{{
		APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, Verbs: []string{"escalate"},
	}}
	for {
		if rules := randomRules(random); Missing(rules, escalate) != nil {
			return rules
		}
	}
}

// partOf returns single grants of rules.
func partOf(random *rand.Rand, rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var part []rbacv1.PolicyRule
	for _, rule := range rules {
		all := grants(rule)
		part = append(part, ruleOfGrant(all[random.IntN(len(all))]))
	}
	return part
}

// grant grants rules to a subject, and waits until they are effective.
func (s server) grant(t *testing.T, who rbacv1.Subject, name string, rules []rbacv1.PolicyRule) {
	t.Helper()
	marker := rbacv1.PolicyRule{APIGroups: []string{"marker.example.org"}, Resources: []string{name}, Verbs: []string{
		"get",
	}}
	s.create(t,
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: append(rules, marker)},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{who},
		})
	wait.Until(t, patience, "the API server knows of "+name, func() (string, bool) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               who.Name,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Group: "marker.example.org", Resource: name, Verb: "get"},
		}}
		if err := s.Create(t.Context(), review); err != nil {
			t.Fatal(err)
		}
		return "no", review.Status.Allowed
	})
}

// as returns a client of another identity.
func (s server) as(t *testing.T, user string) client.Client {
	t.Helper()
	config := rest.CopyConfig(s.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// apply creates the objects of YAML, as kubectl would.
func (s server) apply(t *testing.T, missing []rbacv1.PolicyRule, who rbacv1.Subject) {
	t.Helper()
	text, err := Lack{Everywhere: missing}.YAML(who)
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(text), "---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), object); err != nil {
			t.Fatal(err)
		}
		// Two subjects may lack the same rules; then the role already exists.
		err := s.Create(t.Context(), object)
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
}

var (
	listed = regexp.MustCompile(`(\w+):\[([^\]]*)\]`)
	quoted = regexp.MustCompile(`"([^"]*)"`)
)

// refusalRules reads the rules of the message with which the API server refuses.
func refusalRules(t *testing.T, err error) []rbacv1.PolicyRule {
	t.Helper()
	_, text, found := strings.Cut(err.Error(), "not currently held:\n")
	if !found {
		t.Fatalf("another refusal: %v", err)
	}
	var rules []rbacv1.PolicyRule
	for line := range strings.Lines(text) {
		var rule rbacv1.PolicyRule
		fields := map[string]*[]string{
			"APIGroups": &rule.APIGroups, "Resources": &rule.Resources, "ResourceNames": &rule.ResourceNames,
			"NonResourceURLs": &rule.NonResourceURLs, "Verbs": &rule.Verbs,
		}
		for _, field := range listed.FindAllStringSubmatch(line, -1) {
			for _, word := range quoted.FindAllStringSubmatch(field[2], -1) {
				*fields[field[1]] = append(*fields[field[1]], word[1])
			}
		}
		rules = append(rules, rule)
	}
	return rules
}
