package consent_test

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/consent"
	"github.com/xpkg-dev/xpkg/internal/fence"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// A user approves only in the own name, with the permission for that transaction, and takes back only own approvals.
func TestApprovalsNameTheUserWhoApproves(t *testing.T) {
	s := fenced(t)
	const jane, other = "jane smith", "joe" // A name may have spaces.
	a, b := "sha256:"+strings.Repeat("a", 64), "sha256:"+strings.Repeat("b", 64)
	approved := func(lines ...string) *v1alpha1.Transaction {
		change := transaction(wanted(v1.ProviderKind, nil))
		change.Annotations = map[string]string{fence.AnnotationApprovals: strings.Join(lines, "\n")}
		return change
	}
	large := make([]string, 300)
	for i := range large {
		large[i] = fmt.Sprintf("sha256:%064x %s", i, jane)
	}
	type testCase struct {
		user     string
		old, now []string
		isDenied bool
	}
	cases := map[string]testCase{
		"an approval":                   {jane, nil, []string{a + " " + jane}, false},
		"a second one":                  {jane, []string{a + " " + other}, []string{a + " " + other, a + " " + jane}, false},
		"another plan":                  {jane, []string{a + " " + jane}, []string{b + " " + jane}, false},
		"it is taken back":              {jane, []string{a + " " + jane, a + " " + other}, []string{a + " " + other}, false},
		"the order":                     {other, []string{a + " " + jane, b + " x"}, []string{b + " x", a + " " + jane}, false},
		"in the name of another":        {jane, nil, []string{a + " " + other}, true},
		"a name with the own as an end": {jane, nil, []string{a + " the " + jane}, true},
		"the own and another":           {jane, nil, []string{a + " " + jane, a + " " + other}, true},
		"no digest":                     {jane, nil, []string{"* " + jane}, true},
		"a short digest":                {jane, nil, []string{"sha256:aa " + jane}, true},
		"two lines in one":              {jane, nil, []string{a + " " + jane + "\r" + a + " " + other}, true},
		"that of another is removed":    {jane, []string{a + " " + other}, nil, true},
		"that of another is moved":      {jane, []string{a + " " + other}, []string{b + " " + other}, true},
		"all are removed":               {other, []string{a + " " + jane, a + " " + other}, nil, true},
		"without the verb for it":       {other, nil, []string{a + " " + other}, true},
		"too many":                      {jane, nil, large, true},
	}
	// The fence does not exist yet.
	changes := map[string]*v1alpha1.Transaction{}
	var names []string
	for name, tc := range cases {
		change := approved(tc.old...)
		change.Name = fmt.Sprintf("change-%d", len(changes))
		if err := s.Client.Create(t.Context(), change); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.CleanUp(t, change) })
		changes[name], names = change, append(names, change.Name)
	}
	for user, names := range map[string][]string{jane: names, other: {"another"}} {
		env.Grant(t, s.Client, env.User(user), rbacv1.PolicyRule{
			APIGroups: []string{v1alpha1.Group}, Resources: []string{"transactions"}, Verbs: []string{"get", "patch"},
		}, rbacv1.PolicyRule{
			APIGroups: []string{v1alpha1.Group}, Resources: []string{"transactions"}, ResourceNames: names, Verbs: []string{"approve"},
		})
	}
	policy, binding := fence.Approvals().Objects()
	s.CreateTemporary(t, policy, binding)
	wait.Until(t, env.Limit, "the fence is in force", func() (string, bool) {
		gap, err := consent.CheckApprovals(t.Context(), s.Client)
		return fmt.Sprint(gap, err), err == nil && gap == (consent.Gap{})
	})
	isDenied := func(err error) bool { return err != nil && strings.Contains(err.Error(), fence.ApprovalsName) }
	wait.Until(t, env.Limit, "the fence denies approvals of a new transaction", func() (string, bool) {
		err := s.Client.Create(t.Context(), approved(a+" "+jane), client.DryRunAll)
		return fmt.Sprint(err), isDenied(err)
	})
	for name, tc := range cases {
		after := changes[name].DeepCopy()
		after.Annotations[fence.AnnotationApprovals] = strings.Join(tc.now, "\n")
		err := env.NewClient(t, env.AsUser(s.Config, tc.user)).Patch(t.Context(), after, client.MergeFrom(changes[name]), client.DryRunAll)
		if isDenied(err) != tc.isDenied || !tc.isDenied && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
