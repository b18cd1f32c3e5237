package cli_test

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli"
	"github.com/xpkg-dev/xpkg/internal/testing/hook"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
)

// Webhooks outside of a package's API groups are shown and refused, until the user allows
// exactly these: with `xpkg approve`, or with a flag.
func TestWebhooksOutsideOfAPackagesGroupsAreAllowedByName(t *testing.T) {
	b := newBench(t)
	push := func(tag, operations string) string {
		return publish.Stream(
			t, b.registry, "outside", tag, []byte(hook.Outside("outside", "outside.apply.test", "nothing", operations)),
		).String()
	}
	allowed := func(want string) {
		t.Helper()
		if got := b.provider(t, "outside").Annotations[webhooks.AnnotationAllowed]; got != want {
			t.Errorf("the package allows %q, want %q", got, want)
		}
	}
	first, second := push("v1", "CREATE"), push("v2", "CREATE, DELETE")

	e := b.must(t, 6, "plan", "install", "provider", first, "outside")
	checkMatches(t, e.out, `refuse +validate CREATE core/nothing`)
	checkMatches(t, e.errors, `WebhooksNotAllowed`)
	checkMatches(t, e.errors, `xpkg install provider .*outside:v1.* outside --allow-webhooks`)
	e = b.must(t, 6, "install", "provider", first, "outside", "--wait", "1m")
	checkMatches(t, e.errors, `xpkg install provider .*outside:v1.* outside --allow-webhooks`)
	b.absent(t, "outside")
	b.create(t, "outside", first)
	e = b.must(t, 6, "install", "provider", first, "outside", "--wait", "1m")
	checkMatches(t, e.errors, `WebhooksNotAllowed`)
	checkMatches(t, e.errors, `validate CREATE core/nothing`)
	checkMatches(t, e.errors, `xpkg approve provider/outside`)
	approve := func() (out, errs string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		env := &cli.Env{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr}
		if code := cli.Main(
			t.Context(), []string{"xpkg", "approve", "outside", "--yes", "--wait", "1m", "--kubeconfig", b.kubeconfig}, env,
		); code != 0 {
			t.Fatalf("xpkg approve: exit code %d\n%s", code, stderr.String())
		}
		return stdout.String(), stderr.String()
	}
	_, shown := approve()
	checkMatches(t, shown, `\+ validate CREATE core/nothing`)
	allowed("validate CREATE core/nothing")
	if p := b.provider(t, "outside"); p.GetCondition(v1.TypeHealthy).Status != corev1.ConditionTrue {
		t.Errorf("xpkg approve --wait has not waited: %v", p.GetCondition(v1.TypeHealthy))
	}
	b.must(t, 0, "install", "provider", first, "outside", "--wait", "1m")
	again, _ := approve()
	checkMatches(t, again, `has no pending approval`)

	e = b.must(t, 6, "update", "outside", "v2", "--yes")
	checkMatches(t, e.errors, `validate CREATE,DELETE core/nothing`)
	checkMatches(t, e.errors, `--allow-webhooks`)
	allowed("validate CREATE core/nothing")
	b.must(t, 11, "update", "outside", "v2", "--yes", "--allow-webhooks", "--atomic", "--wait", "1ns").
		prints(t, "All changes were undone: ")
	allowed("validate CREATE core/nothing")
	b.must(t, 0, "update", "outside", "v2", "--yes", "--allow-webhooks", "--wait", "1m")
	allowed("validate CREATE,DELETE core/nothing")
	b.must(t, 0, "uninstall", "provider", "outside", "--yes", "--on-delete", "cascade=100", "--wait", "1m")

	e = b.must(t, 0, "install", "provider", second, "outside", "--allow-webhooks", "--wait", "1m")
	checkMatches(t, e.errors, `\+ +validate CREATE,DELETE core/nothing`)
	allowed("validate CREATE,DELETE core/nothing")
	b.must(t, 0, "uninstall", "provider", "outside", "--yes", "--on-delete", "cascade=100", "--wait", "1m")
}
