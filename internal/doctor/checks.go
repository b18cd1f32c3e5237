package doctor

import (
	"fmt"
	"path"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/consent"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/fence"
	"github.com/xpkg-dev/xpkg/internal/wording"
)

// fenceMinor is the first minor version of Kubernetes with ValidatingAdmissionPolicies.
const fenceMinor = 30

func checkServer(name string, f Facts) []Finding {
	if f.Minor > 0 && f.Minor < fenceMinor {
		return []Finding{warn(name, "Kubernetes "+f.Version+
			" has no ValidatingAdmissionPolicies, which protect the manager from package runtimes and from Crossplane core",
			fmt.Sprintf("Upgrade to Kubernetes 1.%d or later.", fenceMinor))}
	}
	return []Finding{ok(name, "Kubernetes "+f.Version+" responds")}
}

func checkPermissions(name string, f Facts) []Finding {
	if len(f.Lacking) > 0 {
		return []Finding{fail(name, ErrNotPermitted, "you may not "+
			wording.Few(f.Lacking, 5, ", "), "Run `xpkg bootstrap --apply` as a cluster administrator.")}
	}
	return []Finding{ok(name, "you may install the manager")}
}

// role is the part of the work of a manager with the default options of xpkg bootstrap.
var role = crossplane.Role{Permissions: true, Runtimes: true}

func checkCores(name string, f Facts) []Finding {
	var out []Finding
	for _, core := range f.Cores {
		conflicts := core.Conflicts(role)
		where := "core in the namespace " + core.Account.Namespace
		for _, conflict := range conflicts {
			out = append(
				out, fail(name, ErrBlocked, where+" conflicts with the manager: "+conflict.Problem, upper(conflict.Remedy)+"."),
			)
		}
		if core.Runs && len(conflicts) == 0 {
			out = append(out, ok(name, where+" does not write packages"))
		}
	}
	if len(out) == 0 {
		return []Finding{ok(name, "no Deployment of core exists")}
	}
	return out
}

func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func checkManagers(name string, f Facts) []Finding {
	var running []Lease
	for _, l := range f.Leases {
		if l.Holder != "" && f.Now.Before(l.Expires) {
			running = append(running, l)
		}
	}
	switch {
	case len(running) > 1:
		return []Finding{fail(name,
			ErrBlocked, fmt.Sprintf("%d managers work on the cluster: %s in %s and %s in %s", len(running),
				running[0].Holder, running[0].Namespace, running[1].Holder, running[1].Namespace),
			fmt.Sprintf(
				"Stop one of them, for example with `kubectl scale deployment/xpkg --namespace %s --replicas 0`.",
				running[1].Namespace,
			))}
	case len(running) == 1 && running[0].Namespace != f.Namespace:
		return []Finding{fail(name, ErrBlocked,
			fmt.Sprintf("the manager %s works on the cluster, in the namespace %s", running[0].Holder, running[0].Namespace),
			"Use that manager: pass `--namespace "+running[0].Namespace+"`, or stop it.")}
	case len(running) == 1:
		return []Finding{ok(name, running[0].Holder+" works on the cluster")}
	case f.installed():
		return []Finding{warn(name, "the package API is installed, and no manager renews the Lease in "+f.Namespace,
			"Run `kubectl get pods --namespace "+f.Namespace+"`, or install the manager with `xpkg bootstrap --apply`.")}
	}
	return []Finding{ok(name, "no other manager works on the cluster")}
}

func checkFence(name string, f Facts) []Finding {
	switch {
	case f.FenceChanged:
		return []Finding{warn(name, "the policy "+fence.RuntimesName+
			" or its binding is not the one of this version of xpkg, so a package runtime may take over the manager",
			"Unless you have changed it on purpose, run `kubectl delete validatingadmissionpolicy,validatingadmissionpolicybinding "+
				fence.RuntimesName+"`; the manager writes it again.")}
	case f.Fenced:
		return []Finding{ok(name, "a policy protects the manager from package runtimes")}
	case f.WithoutRuntimes:
		return []Finding{ok(name, "the manager starts no package runtimes")}
	case f.installed():
		return []Finding{warn(name,
			"the policy "+fence.RuntimesName+" is missing, so a package runtime may take over the manager",
			"Restart the manager, which writes the policy, with "+wording.RestartManager()+".")}
	}
	return []Finding{ok(name, "not installed yet")}
}

func checkConsents(name string, f Facts) []Finding {
	switch {
	case f.ConsentGap == (consent.Gap{}):
		return []Finding{ok(name, "a policy denies consents of users who may not give them")}
	case f.installed():
		return []Finding{warn(name, "the manager accepts no consents in annotations of packages, because "+
			f.ConsentGap.Why, f.ConsentGap.Fix)}
	}
	return []Finding{ok(name, "not installed yet")}
}

func checkFormerRuntimes(name string, f Facts) []Finding {
	var out []Finding
	for _, r := range f.FormerRuntimes {
		out = append(out, warn(name, fmt.Sprintf(
			"the Deployment %s/%s of %s still exists, but the selected runtime is %s", r.Namespace, r.Deployment, r.Owner,
			r.Chosen,
		),
			fmt.Sprintf(
				"Run `kubectl delete deployment --namespace %s %s`, so that not two runtimes work on the same resources.",
				r.Namespace, r.Deployment,
			)))
	}
	if len(out) == 0 {
		return []Finding{ok(name, "no former runtime of a package is left")}
	}
	return out
}

func checkPackageAPI(name string, f Facts) []Finding {
	var foreign, older, missing []string
	for _, d := range f.Definitions {
		switch {
		case !d.Exists:
			missing = append(missing, d.Name)
		case !d.IsOwn:
			foreign = append(foreign, d.Name)
		case !d.IsCurrent:
			older = append(older, d.Name)
		}
	}
	switch {
	case len(foreign) > 0:
		return []Finding{fail(name, ErrBlocked, "another program installed "+wording.Few(foreign, 3, ", "),
			"Stop the other package manager permanently, and run `xpkg bootstrap --apply --take-over`.")}
	case len(missing) == len(f.Definitions):
		return []Finding{ok(name, "not installed yet")}
	case len(missing) > 0:
		return []Finding{warn(name, "missing: "+
			wording.Few(missing, 3, ", "), "Start the manager, which installs them, or run `xpkg bootstrap --apply`.")}
	case len(older) > 0:
		return []Finding{warn(name, "of another version: "+
			wording.Few(older, 3, ", "), "Run `xpkg bootstrap --apply` to install the manager of this version.")}
	}
	return []Finding{ok(name, fmt.Sprintf("%d CRDs are installed", len(f.Definitions)))}
}

func checkWebhooks(name string, f Facts) []Finding {
	var out []Finding
	for _, w := range f.Webhooks {
		if w.Endpoints > 0 {
			continue
		}
		message := fmt.Sprintf("%s: the Service %s of %s has no ready endpoints", w.Configuration, w.Service, w.Name)
		namespace, service, _ := strings.Cut(w.Service, "/")
		fix := fmt.Sprintf(
			"Start its pods: `kubectl describe service --namespace %s %s`; or delete the configuration: `kubectl delete %s`.",
			namespace, service, w.Configuration,
		)
		if w.Blocks {
			out = append(out, fail(name, ErrUnhealthy, message+", so the API server rejects requests", fix))
		} else {
			out = append(out, warn(name, message, fix))
		}
	}
	if len(out) == 0 {
		return []Finding{ok(name, "the Services of "+wording.Count(len(f.Webhooks), "webhook")+" have endpoints")}
	}
	return out
}

func checkEscalation(name string, f Facts) []Finding {
	if len(f.Escalation) > 0 {
		return []Finding{warn(name, "the manager has the verbs "+strings.Join(f.Escalation, " and ")+
			" on roles, so a user who controls it is an administrator",
			"Run `xpkg bootstrap --apply` with --package-group and the API groups of the resources that package runtimes manage.")}
	}
	return []Finding{ok(name, "the manager can only grant permissions that it has")}
}

func checkRegistries(name string, f Facts) []Finding {
	var out []Finding
	for _, r := range f.Registries {
		if r.Error != "" {
			out = append(out, warn(name, r.Host+" does not respond to this machine: "+r.Error,
				"Check the network, and the flags --ca-file and --insecure of this command. The manager connects to the registry from its own machine or pod."))
		}
	}
	if len(out) == 0 {
		return []Finding{ok(name, wording.Count(len(f.Registries), "registry")+" of packages responded")}
	}
	return out
}

func checkPackages(name string, f Facts) []Finding {
	if out := attention(name, f.Packages); len(out) > 0 {
		return out
	}
	return []Finding{ok(name, wording.Count(len(f.Packages), "package")+" ready")}
}

func checkFirstGeneration(name string, f Facts) []Finding {
	if out := attention(name, f.FirstGeneration); len(out) > 0 {
		return out
	}
	return []Finding{ok(name, wording.Count(len(f.FirstGeneration), "object")+" ready")}
}

// attention returns a finding for each package or object that is not ready, and one for each that is paused.
func attention(name string, all []Package) []Finding {
	var out []Finding
	for _, p := range all {
		short := path.Join(strings.ToLower(p.Kind), p.Namespace, p.Name)
		add := func(f Finding, cause string) {
			f.Subject, f.Cause = short, cause
			out = append(out, f)
		}
		if p.Resume != "" {
			add(warn(name, short+" is paused: the manager does not reconcile it", "Run `"+p.Resume+"`."), "")
		}
		if p.Ready || p.Resume != "" && p.Reason == "" {
			continue
		}
		describe := fmt.Sprintf("Run `xpkg describe %s`.", short)
		if p.Describe != "" {
			describe = "Run `" + p.Describe + "`."
		}
		// A message starts with its code, which is the reason.
		why := strings.TrimPrefix(p.Message, p.Reason+": ")
		if p.Fix != "" {
			why = strings.TrimSuffix(why, " "+p.Fix) // The fix of the finding contains it.
		}
		switch {
		case p.Reason == "":
			add(warn(name, short+" is not reconciled yet", "Check that the manager runs. "+describe), "")
		case p.Waiting:
			add(warn(name, short+" waits: "+reasonText(p.Reason, why), describe), p.Reason)
		default:
			add(
				fail(name, ErrUnhealthy, short+" is not ready: "+reasonText(p.Reason, why), strings.TrimSpace(p.Fix+" "+describe)),
				p.Reason,
			)
		}
	}
	return out
}

// reasonText returns a reason with its explanation, if there is one.
func reasonText(reason, why string) string {
	if why == "" {
		return reason
	}
	return reason + ": " + why
}
