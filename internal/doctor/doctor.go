// Package doctor checks a cluster before and after the installation of the manager.
//
// Each check is a pure function of [Facts], which [Reader.Read] returns from the cluster.
package doctor

import (
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Result is the result of a check.
type Result string

// Results, best first.
const (
	OK   Result = "ok"
	Warn Result = "warn"
	Fail Result = "fail"
)

// Finding is a result with its reason and its remedy.
type Finding struct {
	Check   string `json:"check"`
	Result  Result `json:"result"`
	Message string `json:"message"`
	// Fix is the remedy, with the exact command. It is empty for OK.
	Fix string `json:"fix,omitempty"`
	// Subject is the object of the finding, as the message names it, or empty. Cause is the same for the findings of all
	// objects to which the same happened.
	Subject string `json:"-"`
	Cause   string `json:"-"`

	code errcode.Code
}

// Codes for failed checks.
var (
	ErrBlocked = errcode.Code{
		Name: "ClusterBlocked", Class: errcode.Conflict,
		Cause: "Another program in the cluster would write the same objects as the manager.",
		Fix:   "Carry out the fixes that `xpkg doctor` prints.",
	}
	ErrNotPermitted = errcode.Code{
		Name: "BootstrapNotPermitted", Class: errcode.Unauthorized,
		Cause: "The user of the kubeconfig lacks permissions for the installation of the manager.",
		Fix:   "Run `xpkg bootstrap --apply` as a cluster administrator.",
	}
	ErrUnhealthy = errcode.Code{
		Name: "ClusterUnhealthy", Class: errcode.Unhealthy,
		Cause: "A package is not healthy, or a webhook of the cluster does not serve.",
		Fix:   "Carry out the fixes that `xpkg doctor` prints.",
	}
)

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code { return []errcode.Code{ErrNotPermitted, ErrBlocked, ErrUnhealthy} }

// checks lists all checks, in the order of their findings.
var checks = []struct {
	name string
	run  func(name string, f Facts) []Finding
}{
	{server, checkServer}, {permissions, checkPermissions}, {escalation, checkEscalation}, {cores, checkCores},
	{composites, checkXRDs}, {managers, checkManagers}, {runtimeFence, checkFence}, {consents, checkConsents},
	{formerRuntimes, checkFormerRuntimes},
	{packageAPI, checkPackageAPI}, {webhooks, checkWebhooks}, {registries, checkRegistries},
	{packages, checkPackages}, {firstGeneration, checkFirstGeneration},
}

// Names of the checks.
const (
	server      = "API server"
	permissions = "permissions"
	cores       = "Crossplane core"
	composites  = "XRDs"
	managers    = "manager"
	packageAPI  = "package API"
	// runtimeFence is the policy that protects the manager from package runtimes.
	runtimeFence = "runtime fence"
	// consents is the policy that denies consents of users who may not give them.
	consents = "consents"
	// formerRuntimes are the Deployments of packages whose runtimes the manager runs in another way now.
	formerRuntimes = "former runtimes"
	webhooks       = "webhooks"
	registries     = "registries"
	packages       = "packages"
	// firstGeneration is the API packages.crossplane.io.
	firstGeneration = "first generation"
	escalation      = "manager permissions"
)

// Check returns the findings of all checks.
func Check(f Facts) []Finding {
	var out []Finding
	for _, check := range checks {
		if reason, unread := f.Unread[check.name]; unread {
			out = append(
				out, warn(check.name, "cannot be checked: "+reason, "Run `xpkg doctor` as a user with the permission to read it."),
			)
			continue
		}
		out = append(out, check.run(check.name, f)...)
	}
	return out
}

// Err returns the failure for findings: the one with the highest exit code, or nil if no check failed.
func Err(findings []Finding) error {
	failed := slices.DeleteFunc(slices.Clone(findings), func(f Finding) bool { return f.Result != Fail })
	if len(failed) == 0 {
		return nil
	}
	worst := slices.MaxFunc(failed, func(a, b Finding) int { return a.code.Class.Exit - b.code.Class.Exit })
	message, _, _ := strings.Cut(worst.Message, "\n\n") // Without a manifest.
	return worst.code.New(
		nil, "%d of %d checks failed; the most severe is %s: %s", len(failed), len(findings), worst.Check, message,
	).
		WithDo("%s", worst.Fix)
}

func ok(check, message string) Finding { return Finding{Check: check, Result: OK, Message: message} }

func warn(check, message, fix string) Finding {
	return Finding{Check: check, Result: Warn, Message: message, Fix: fix}
}

func fail(check string, code errcode.Code, message, fix string) Finding {
	return Finding{Check: check, Result: Fail, Message: message, Fix: fix, code: code}
}
