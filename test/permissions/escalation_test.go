package permissions_test

import (
	"encoding/json"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

const execsInPods = `{apiGroups: [""], resources: [pods/exec], verbs: [create]}`

// The first version of a package that requests control of the cluster waits, with nothing
// written, until a person has approved exactly that. The plan shows it before.
//
// hardening: E12, H3
func TestEscalationWaitsForApproval(t *testing.T) {
	s := newSuite(t)
	s.run(t, s.Config, controller.Permissions{})
	of := func(rules ...string) string {
		return provider("escalation", "", requests(rules...), crd("things.escalation.example.org", "Namespaced"))
	}
	ref := s.Push(t, "permissions/escalation", "planned", of(readsPods, execsInPods))
	code, text, stderr := xpkg(t, "plan", "install", "provider", ref, "escalation", "--cache-dir", t.TempDir())
	if code != 2 || !strings.Contains(text, "approve  create pods/exec in the core group, to run commands in every pod") {
		t.Errorf("exit code %d\n%s%s", code, text, stderr)
	}
	_, raw, _ := xpkg(t, "plan", "install", "provider", ref, "escalation", "--cache-dir", t.TempDir(), "-o", "json")
	var plan planner.Plan
	if err := json.Unmarshal([]byte(raw), &plan); err != nil || plan.Permissions == nil {
		t.Fatalf("%v: %s", err, raw)
	}

	p := s.install(t, "escalation", of(readsPods, execsInPods))
	message := s.waits(t, p, rbac.ErrPermissionEscalation.Name)
	if !strings.Contains(message, "run commands in every pod") ||
		!strings.Contains(message, rbac.Fingerprint(plan.Permissions.NeedsApproval)) {
		t.Errorf("the manager waits for something else than the plan shows: %s", message)
	}
	first := p.Status.CurrentRevision
	s.absent(t, &apiextensionsv1.CustomResourceDefinition{}, "things.escalation.example.org")
	s.absent(t, &rbacv1.ClusterRole{}, "crossplane:provider:"+first+":system")

	if said := approve(t, p); !strings.Contains(said, "+ create pods/exec in the core group") ||
		strings.Contains(said, "get, list") {
		t.Errorf("xpkg approve does not show exactly the permissions that need approval:\n%s", said)
	}
	s.healthy(t, p)
	s.allowed(t, first, "create /pods/exec@"+elsewhere, "get /pods@"+elsewhere)

	// The next version has the permission already; another one needs approval again.
	s.upgrade(t, p, "v2", of(execsInPods))
	s.healthy(t, p)
	s.upgrade(t, p, "v3", of(execsInPods, `{apiGroups: [""], resources: [nodes/proxy], verbs: [get]}`))
	if message := s.waits(t, p, rbac.ErrPermissionEscalation.Name); !strings.Contains(message, "nodes/proxy") ||
		strings.Contains(message, "pods/exec") {
		t.Errorf("the message does not name exactly the added permission: %s", message)
	}
}
