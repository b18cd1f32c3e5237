package operation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/lazyregexp"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// waitInstalled waits until p is healthy.
func (e *Engine) waitInstalled(waiting context.Context, p v1.Package, limit time.Duration, isNew bool) error {
	ctx, cancel := context.WithTimeout(waiting, limit)
	defer cancel()
	progress := e.Progress()
	defer progress.End()
	if isNew {
		progress.Set("installing %s from %s", inventory.ShortName(p), p.PackageSpec().Package)
	}
	err := waitHealthy(ctx, e.Client, p, progress)
	if name := inventory.ShortName(p); err != nil && waiting.Err() != nil {
		do := fmt.Sprintf("The manager continues; `xpkg describe %s` shows the state.", name)
		if isNew {
			do += fmt.Sprintf(
				" `xpkg uninstall %s` removes the package, and `xpkg autoremove` then the dependencies that were installed with it.",
				name,
			)
		}
		return errcode.ErrInterrupted.New(nil, "stopped waiting until %s is healthy", name).WithDo("%s", do)
	}
	return err
}

// pollInterval is the interval between reads of a package while waiting.
const pollInterval = 200 * time.Millisecond

// adviseRuntime adds to the error of a package whose runtime fails where its log is, and how the former version comes
// back.
func adviseRuntime(p v1.Package, failed *errcode.Error) error {
	if !runtime.IsRuntimeFailure(string(p.GetCondition(v1.TypeReady).Reason)) {
		return failed
	}
	name := inventory.ShortName(p)
	do := fmt.Sprintf("Read the log of its runtime with `xpkg logs %s`.", name)
	if healthy := formerOf(p); healthy != "" {
		do += fmt.Sprintf(
			" The manager rolls back to %s at the activation deadline; `xpkg rollback %s` does so at once.", healthy, name,
		)
	}
	return failed.WithDo("%s", do)
}

// waitHealthy waits until a package and all packages that it requires are healthy.
func waitHealthy(ctx context.Context, cluster client.Client, p v1.Package, progress Progress) error {
	kind := p.GetObjectKind().GroupVersionKind()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	var health packageHealth
	var outage outage
	for {
		now, err := readHealth(ctx, cluster, p)
		p.GetObjectKind().SetGroupVersionKind(kind)
		if outage.tolerates(err) {
			now, err = packageHealth{of: p, message: errcode.From(err).What}, nil
		}
		if err != nil || now.ready {
			return err
		}
		// The check that the end of the time cuts off knows less than the one before.
		if health.of == nil || ctx.Err() == nil || now.isReported {
			health = now
		}
		if health.isReported {
			progress.Set("%s: %s", inventory.ShortName(p), health.message)
		} else if !progress.IsSet() {
			progress.Set("waiting for %s from %s", inventory.ShortName(p), p.PackageSpec().Package)
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return ctx.Err()
			}
			failed := ErrWait.New(
				errors.New(strings.TrimSuffix(health.message, ".")), "%s is not healthy", inventory.ShortName(p),
			)
			if v1.IsPaused(health.of) {
				return failed.WithDo(
					"The manager changes nothing until you run `%s`.",
					state.ResumeCommand(health.of.PackageKind(), health.of.GetName()),
				)
			}
			return adviseRuntime(health.of, failed)
		case <-tick.C:
		}
	}
}

// outage is a time in which the API server does not respond, or responds with server errors.
type outage struct{ since time.Time }

// outageTime is the time for which a wait tolerates an outage. A command that undoes its changes would undo them
// otherwise.
const outageTime = 10 * time.Second

// tolerates reports whether a wait continues after a read with an error, which can be nil.
func (o *outage) tolerates(err error) bool {
	if !errors.Is(err, apiserver.ErrCluster) {
		o.since = time.Time{}
		return false
	}
	if o.since.IsZero() {
		o.since = time.Now()
	}
	return time.Since(o.since) < outageTime
}

// readHealth reads a package and returns its health.
func readHealth(ctx context.Context, cluster client.Client, p v1.Package) (packageHealth, error) {
	if err := cluster.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil && ctx.Err() == nil {
		if apierrors.IsNotFound(err) {
			return packageHealth{}, inventory.ErrPackageNotFound.New(
				nil, "another client deleted %s while the command waited for it", inventory.ShortName(p),
			)
		}
		return packageHealth{}, apiserver.Classify(err, "read %s", inventory.ShortName(p))
	}
	if err := inventory.CheckNotDeleting(p); err != nil {
		return packageHealth{}, err
	}
	return checkHealth(ctx, cluster, p)
}

// packageHealth is the result of one check of a package and its dependencies.
type packageHealth struct {
	ready bool
	// of is the package that is not healthy: the one that is waited for, or a dependency.
	of v1.Package
	// message is the reason why the package is not ready.
	message string
	// isReported reports whether the manager has reported the message for the current spec.
	isReported bool
}

// checkHealth returns the health of a package and of the packages that it requires. The error is the permanent failure
// of the package, or the failure to read its dependencies.
func checkHealth(ctx context.Context, cluster client.Client, p v1.Package) (packageHealth, error) {
	health := p.GetCondition(v1.TypeHealthy)
	if health.ObservedGeneration != p.GetGeneration() || !v1.IsRetryHandled(p, p.PackageStatus().LastHandledRetry) {
		return packageHealth{of: p, message: inventory.HealthMessage(p), isReported: inventory.Paused(p)}, nil
	}
	if health.Status == corev1.ConditionTrue {
		return checkDependencies(ctx, cluster, p)
	}
	if health.Message != "" {
		if err := finalFailure(p); err != nil && !allowedMeanwhile(ctx, cluster, p, err) {
			return packageHealth{}, err
		}
	}
	return packageHealth{of: p, message: inventory.HealthMessage(p), isReported: health.Message != "" ||
		inventory.Paused(p)}, nil
}

// checkDependencies returns the health of a healthy package from the packages that it requires, directly or indirectly.
// A package is not ready before all of them are known to be healthy. The manager writes the dependencies of a package
// to the Lock shortly after the package is healthy. If the user is not allowed to read the packages, checkDependencies
// does not check them.
func checkDependencies(ctx context.Context, cluster client.Client, p v1.Package) (packageHealth, error) {
	all, err := inventory.Load(ctx, cluster)
	switch {
	case errors.Is(err, apply.ErrForbidden):
		return packageHealth{ready: true}, nil
	case ctx.Err() != nil:
		return packageHealth{of: p, message: "its dependencies were not read in time"}, nil
	case err != nil:
		return packageHealth{}, err
	}
	if d := all.UnhealthyDependency(p); d != nil {
		message := fmt.Sprintf("its dependency %s is not healthy: %s", inventory.ShortName(d), inventory.HealthMessage(d))
		return packageHealth{of: d, message: message, isReported: true}, nil
	}
	if inventory.PendingActivation(p) == "" && !all.KnowsNeeds(p) {
		return packageHealth{of: p, message: "the manager has not written its dependencies to the Lock", isReported: true},
			nil
	}
	return packageHealth{ready: true}, nil
}

// The results of packages that are ready.
const (
	resultHealthy  = "healthy"
	resultInactive = "waits to be activated"
)

// outcomesOfWait returns a function that returns the state of a package after a successful wait. It reports a note if
// the new revision needs manual activation, or if the condition of the healthy package has a message. The advice after
// the first sentence of a note is reported once.
func (e *Engine) outcomesOfWait() func(v1.Package) string {
	reported := map[string]bool{}
	return func(p v1.Package) string {
		if why := inventory.PendingActivation(p); why != "" {
			e.Note("%s", why)
			return resultInactive
		}
		if note := inventory.HealthNote(p); note != "" {
			if fact, advice, ok := strings.Cut(note, ". "); ok && reported[advice] {
				note = fact + "."
			} else {
				reported[advice] = ok
			}
			e.Note("%s: %s", inventory.ShortName(p), note)
		}
		return resultHealthy
	}
}

// finalFailure returns the permanent failure of a package, or nil.
func finalFailure(p v1.Package) error {
	code, what, do := failureOf(p)
	former := formerOf(p)
	outcome := "cannot be installed"
	if former != "" {
		outcome = "cannot be updated"
	}
	switch code.Class.Name {
	case errcode.Invalid.Name, errcode.Usage.Name, errcode.NotFound.Name, errcode.Unauthorized.Name,
		errcode.Untrusted.Name, errcode.Limit.Name, errcode.Unsupported.Name:
	default:
		if needsChange(code) {
			break
		}
		if code.Name != revision.ErrRolledBack.Name {
			return nil
		}
		return code.New(errors.New(what), "%s does not run the requested version", inventory.ShortName(p)).WithDo("%s", do)
	}
	do += adviseRollback(p)
	return code.New(errors.New(what), "%s %s", inventory.ShortName(p), outcome).WithDo("%s", do)
}

// needsChange reports whether a refusal stays until the objects of the cluster that it names are changed. Objects of
// other packages are released, and deletions end.
func needsChange(code errcode.Code) bool {
	return code.Refusal && code.Name != apply.ErrRefused.Name && code.Name != apply.ErrDeleting.Name
}

// adviseRollback returns the sentence with the command that returns a failed package to its last healthy revision, or
// "" without one.
func adviseRollback(p v1.Package) string {
	former := formerOf(p)
	if former == "" {
		return ""
	}
	return fmt.Sprintf(" `xpkg rollback %s` returns to the last healthy version, %s.", inventory.ShortName(p), former)
}

// formerOf returns the last healthy revision of a package whose current one is another, or "".
func formerOf(p v1.Package) string {
	status := p.PackageStatus()
	if status.LastHealthyRevision == status.CurrentRevision {
		return ""
	}
	return status.LastHealthyRevision
}

// failureOf parses the failure in the message of the condition Healthy: the code, the failure
// and the fix. The code is zero if the message contains none.
func failureOf(p v1.Package) (code errcode.Code, what, do string) {
	name, rest, _ := strings.Cut(p.GetCondition(v1.TypeHealthy).Message, ": ")
	code, known := codeNamed(name)
	if !known {
		return errcode.Code{}, "", ""
	}
	what, do = rest, code.Fix
	if before, ok := strings.CutSuffix(rest, " "+code.Fix); ok {
		what = before
	} else if at := sentenceEnd().FindStringIndex(rest); at != nil {
		what, do = rest[:at[0]], rest[at[0]+2:]
	}
	return code, strings.TrimSuffix(what, "."), do
}

// sentenceEnd is the boundary between two sentences of a message.
var sentenceEnd = lazyregexp.New(`\. [A-Z]`)
