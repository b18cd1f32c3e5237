package consent_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/apis/crds"
	"github.com/xpkg-dev/xpkg/internal/consent"
	"github.com/xpkg-dev/xpkg/internal/fence"
)

// decisions has a decision for each annotation of xpkg on a package or a revision: consents, safeguards and sources are
// guarded by the fence; the others loosen no protection, for the given reason.
var decisions = map[string]string{
	"adopt":                  "consent",
	"allowed-webhooks":       "consent",
	"accept-breaks":          "consent",
	"approved-permissions":   "consent",
	"permission-increase":    "safeguard",
	"image-source":           "source",
	"content-policy":         "leaves objects out, and allows none that the strict policy denies",
	"kinds":                  "selects kinds of the package, whose content the same user selects",
	"deactivate":             "deletes only the CRDs of kinds without custom resources that nothing needs",
	"deactivated":            "on revisions, and on the Pods of runtimes: a record",
	"crash-kinds":            "on revisions: a record; a kind of the package is activated",
	"uses":                   "on revisions: a record",
	"namespaced-installs":    "grants namespaces the types of the package alone, whose content the same user selects",
	"follow-dependents":      "lets dependents select a version, as they do for dependencies",
	"inherit-pull-secrets":   "the same user may name the secrets in a package of the dependency",
	"install-settings":       "a record; the pull settings are fields that the same user may set",
	"installed-by":           "hands the package to an install object, which cannot change the repository of a package with consents",
	"kind-providers":         "selects a dependency, which the content could name, and whose consents are its own",
	"provides":               "a record of kinds",
	"required-by":            "the removal of orphans deletes no custom resources",
	"on-delete":              "answers a deletion, which only a user who may delete the package can make",
	"retry":                  "requests another attempt of what the package is",
	"rolled-back-from":       "excludes versions from automatic selection",
	"revision-names":         "selects names of revisions",
	"transaction":            "a record; the fence of transactions guards what they write",
	"moving":                 "a record of a migration",
	"created-for-namespaces": "limits what the manager installs",
	"source":                 "on revisions, which needs the permission to change them; a new revision with it inherits no approval by RBAC",
	"was-healthy":            "on revisions: a record",
	"revision-key":           "on revisions: a name",
}

// elsewhere are annotations of other objects: of the Lock, of Secrets, of the objects of packages and runtimes, of
// Leases, and of metadata.
var elsewhere = strings.Fields(`approvals adopted-by adopted-state ca-bundle-hash ca-distributed-at ca-rotated-at certificates content-digest dependency-removal
	dependency-upgrades former-settings healthy index-keys manager-namespace manager-version moved-from package-manager package-runtimes permission-scope
	registry-claim-digest registry-claim-repository registry-claim-tag retract rotate runtime runtime-config runtime-platform runtime-privileges service-account user`)

// Each documented annotation has a decision, so a new one is not forgotten, and the fence guards exactly the ones that
// loosen a protection.
func TestEveryAnnotationThatLoosensAProtectionIsGuarded(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "labels-and-annotations.md"))
	if err != nil {
		t.Fatal(err)
	}
	annotations, _, found := strings.Cut(string(raw), "\n## Labels\n")
	if !found {
		t.Fatal("the document has no list of labels")
	}
	documented := map[string]bool{}
	for _, match := range regexp.MustCompile("(?m)^\\| `xpkg\\.dev/([a-z-]+)` ").FindAllStringSubmatch(annotations, -1) {
		key := match[1]
		documented[key] = true
		decision, ok := decisions[key]
		if isElsewhere := strings.Contains(" "+strings.Join(elsewhere, " ")+" ", " "+key+" "); ok == isElsewhere {
			t.Errorf("xpkg.dev/%s needs one decision: does it loosen a protection, and who may set it?", key)
		}
		for _, f := range consent.Fences() {
			isGuarded := strings.Contains(expressions(f), `"xpkg.dev/`+key+`"`)
			if want := decision == "consent" || decision == "safeguard" || decision == "source" ||
				key == "user" && f.Name == fence.TransactionsName; isGuarded != want {
				t.Errorf("xpkg.dev/%s is guarded by %s: %t, want %t", key, f.Name, isGuarded, want)
			}
		}
	}
	for key := range decisions {
		if !documented[key] {
			t.Errorf("there is no annotation xpkg.dev/%s", key)
		}
	}
}

// expressions returns the expressions of the variables and validations of a fence.
func expressions(f fence.Fence) string {
	var out strings.Builder
	for _, v := range f.Variables {
		out.WriteString(v.Expression)
	}
	for _, v := range f.Validations {
		out.WriteString(v.Expression)
	}
	return out.String()
}

// The API server accepts as spec.package only the references of which the fence knows the repository, unless the
// package comes from the cache.
func TestFenceReadsTheReferencesOfTheAPI(t *testing.T) {
	all, err := crds.Packages()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, crd := range all {
		raw, err := json.Marshal(crd)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(raw), "matches('"+fence.ReferenceForm+"')") {
			n++
		}
	}
	if n != 3 {
		t.Errorf("%d kinds have references of the form of the fence, want 3", n)
	}
}
