// Package operation changes the packages of a cluster. An operation plans the changes of any number of packages, writes
// the packages in an order in which each can become healthy, waits for the result, and undoes the changes if that is
// requested and one of them fails. It is the only code that writes packages on behalf of a user; the package manager
// carries out what it writes.
package operation

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/frontend"
	"github.com/xpkg-dev/xpkg/internal/planner"
)

// Reporter reports what an operation does while it takes place. Texts may contain content of packages and registries.
type Reporter interface {
	// Progress returns the state of a wait.
	Progress() Progress
	// Task starts a task whose number of steps is known.
	Task(what string, args ...any) Task
	// Note reports a fact that does not end the operation.
	Note(text string, args ...any)
	// PlanUnavailable reports why no plan can be computed here.
	PlanUnavailable(why error)
}

// Progress is the state of a wait.
type Progress interface {
	// Set replaces the state.
	Set(text string, args ...any)
	// IsSet reports whether there is a state.
	IsSet() bool
	// End removes the state.
	End()
}

// Task is a task whose number of steps is known.
type Task interface {
	// Step reports that some of the steps are done.
	Step(done, total int, details string)
	// End ends the task.
	End()
}

// Engine plans and changes the packages of a cluster.
type Engine struct {
	Client client.Client
	// Planner plans the changes. It is not needed to carry out steps without plans.
	Planner *planner.Planner
	// Frontend is the API whose objects use packages, or nil.
	Frontend *frontend.API
	// Objects reads the objects of packages.
	Objects *apply.Cluster
	Reporter
}

// Operation changes several packages. A step that is refused refuses the operation before the first write.
type Operation struct {
	*Engine
	// Options are those of all plans; the operation sets what depends on its steps.
	Options planner.Options
	// Wait is the time to wait for each package until it is healthy or deleted; 0 means not to wait.
	Wait time.Duration
	// Atomic makes the manager return all packages after a failure. [Operation.Run] fails if it cannot.
	Atomic bool
	// Deadline limits all waits together, if it is set.
	Deadline time.Time
	// Transaction is the mark of the transaction that the operation carries out, as of [MarkOf], or empty.
	// [Operation.Return] undoes its changes.
	Transaction string
	// DryRun makes the plans show the changes of packages that install objects maintain.
	DryRun bool
	// NeedsPlan makes the operation fail if a step cannot be planned here. Otherwise it continues without a plan.
	NeedsPlan bool
	// OnlyOrphans limits the removals to packages that are orphans when they are removed, also with Yes.
	OnlyOrphans bool
	// Yes reports that the user agrees to all consequences of removals.
	Yes bool
	// Cause is the reason of the change for the history, or empty.
	Cause string
	// Agree returns an error for a plan to which the user has not agreed and cannot be asked to agree. It can be nil.
	Agree func(*planner.Plan) error
}

// wait returns the time to wait for the next package.
func (o Operation) wait() time.Duration {
	if o.Deadline.IsZero() {
		return o.Wait
	}
	return max(time.Until(o.Deadline), 1)
}
