package tocore

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/leader"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/runtime"
)

// check fails with MigrationRefused, and lists all findings. After the manager was stopped there are none: each step
// continues from any state.
func (s *snapshot) check() error {
	if s.managerStopped() && len(s.renames()) == 0 {
		return nil
	}
	if s.local {
		return migration.Refuse([]migration.Finding{{
			Problem: "this is the control plane of `xpkg up`, which stops with its manager and runs no Deployments",
			Remedy:  "name the cluster with --context or --kubeconfig",
		}})
	}
	findings := s.managerFindings()
	for _, f := range s.families {
		for _, found := range s.packageFindings(f) {
			found.Problem = f.Name() + " " + found.Problem
			findings = append(findings, found)
		}
	}
	return migration.Refuse(findings)
}

// managerFindings are the reasons why the manager cannot carry out its part.
func (s *snapshot) managerFindings() []migration.Finding {
	var out []migration.Finding
	if in := s.lock.Annotations[leader.AnnotationNamespace]; in != "" && in != s.namespace {
		out = append(out, migration.Finding{
			Problem: "the manager runs in the namespace " + in, Remedy: "run the command with --namespace " + in,
		})
	}
	for _, name := range s.transactions {
		out = append(out, migration.Finding{
			Problem: "the transaction " + name + " has not ended", Remedy: "wait until it has ended",
		})
	}
	if len(s.renames()) == 0 {
		return out
	}
	switch {
	case s.managerStopped():
		out = append(out, migration.Finding{
			Problem: "the manager, which renames revisions, does not run",
			Remedy:  fmt.Sprintf("run `kubectl scale deployment/%s --namespace %s --replicas 1`", managerName, s.namespace),
		})
	case s.core.Runs && s.core.Writes:
		out = append(out, migration.Finding{
			Problem: "Crossplane core may write packages, so that the manager writes none",
			Remedy:  "apply the manifests of `xpkg bootstrap --beside-core`",
		})
	}
	return out
}

// packageFindings are the reasons why core could not continue with a package. The problems lack their subject.
func (s *snapshot) packageFindings(f family) []migration.Finding {
	if f.GetDeletionTimestamp() != nil {
		return []migration.Finding{{Problem: "is being deleted", Remedy: "wait until it is gone"}}
	}
	if v1.IsPaused(f) {
		return []migration.Finding{{Problem: "is paused", Remedy: "remove its annotation " + v1.AnnotationPaused}}
	}
	var out []migration.Finding
	if found := s.revisionFinding(f); found.Problem != "" {
		out = append(out, found)
	}
	if f.PackageSpec().PackagePullPolicy == corev1.PullNever {
		out = append(out, migration.Finding{
			Problem: "is read from the package cache of the manager only", Remedy: "set spec.packagePullPolicy to IfNotPresent",
		})
	}
	if f.RuntimeSpec() != nil && s.runtimeOf(f) == runtime.Process {
		out = append(out, migration.Finding{
			Problem: "runs as a process, and core runs Deployments",
			Remedy:  "start the manager with --package-runtime=Deployment",
		})
	}
	return out
}

// revisionFinding is the reason why the revision of a package cannot move, or the zero value. While a former migration
// renames the revision, there is none: the step waits for it.
func (s *snapshot) revisionFinding(f family) migration.Finding {
	active := f.Active()
	if s.isBeingRenamed(f) {
		return migration.Finding{}
	}
	if active == nil {
		return migration.Finding{Problem: "has no active revision", Remedy: "activate one, or uninstall the package"}
	}
	switch summary := revision.Summarize(active); {
	case f.PackageStatus().CurrentRevision != active.GetName():
		return migration.Finding{
			Problem: fmt.Sprintf("runs the revision %s, which is not of its current spec", active.GetName()),
			Remedy:  fmt.Sprintf("activate %s, or restore the former spec", f.PackageStatus().CurrentRevision),
		}
	case !summary.Ready:
		return migration.Finding{
			Problem: "is not healthy: " + strings.TrimSuffix(cmp.Or(summary.Message, "its revision is being established"), "."),
			Remedy:  fmt.Sprintf("see `xpkg describe %s`", f.Name()),
		}
	case !s.isRenamed(f) && f.PackageSpec().RevisionActivationPolicy == v1.ManualActivation:
		return migration.Finding{
			Problem: "gets another revision, which its policy does not activate",
			Remedy:  "set spec.revisionActivationPolicy to Automatic",
		}
	}
	return migration.Finding{}
}

// runtimeOf returns the runtime that the manager has announced for a package.
func (s *snapshot) runtimeOf(f family) runtime.Name {
	choice, err := runtime.ParseChoice(s.lock.Annotations[runtime.AnnotationChoice], runtime.Deployment)
	if err != nil {
		return ""
	}
	return choice.Of(f.PackageKind(), f.GetName())
}

// fenceDetail describes what becomes of the policy that denies core the writes of packages.
func (s *snapshot) fenceDetail() string {
	if len(s.others) == 0 {
		return fmt.Sprintf("The policy %s is deleted.", crossplane.FenceName)
	}
	var accounts []string
	for _, account := range s.others {
		accounts = append(accounts, account.String())
	}
	return fmt.Sprintf(
		"The policy %s stays for %s: two installations of core must not write the same packages.", crossplane.FenceName,
		strings.Join(accounts, ", "),
	)
}

// notes are the sentences that a user should know.
func (s *snapshot) notes() []string {
	var lost []string
	for _, f := range s.families {
		for _, key := range traces(f.GetAnnotations()) {
			if key != revision.AnnotationNames && !slices.Contains(lost, key) {
				lost = append(lost, key)
			}
		}
	}
	slices.Sort(lost)
	notes := []string{
		"Core names the image of a runtime by its tag, and rolls out each runtime whose image the manager had pinned to its digest. The former pod stays until the new one is available.",
		"Core converts CRDs of Providers to managed resource definitions and becomes their field manager; it writes each CRD once for that.",
		"Core activates the kinds that its policies select: a policy with *, such as the default one of its chart, activates those too that are inactive now.",
		"Roles of Functions and roles in namespaces stay until their revision is deleted; core creates none for them.",
		"Values with which the chart of Crossplane was configured for the manager (args with --package-runtime=External, rbacManager.replicas=0) have to be removed from the values of the release too: the next `helm upgrade` would restore them.",
	}
	if s.manager != nil && s.manager.Labels["app.kubernetes.io/managed-by"] == "Helm" {
		notes = append(notes,
			fmt.Sprintf("The manager was installed with Helm: run `helm uninstall %s --namespace %s --no-hooks` afterwards, which removes the record of the release.",
				s.manager.Annotations["meta.helm.sh/release-name"], s.manager.Annotations["meta.helm.sh/release-namespace"]))
	}
	if len(lost) > 0 {
		notes = append(notes, "Core has no equivalent of these annotations of packages, which are removed: "+
			strings.Join(lost, ", ")+".")
	}
	return notes
}
