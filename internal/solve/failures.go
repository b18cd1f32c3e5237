package solve

import "github.com/xpkg-dev/xpkg/internal/failure"

// What can be wrong with a problem.
var (
	ErrUnsolvable = failure.Register(failure.Code{
		Name: "Unsolvable", Class: failure.Conflict,
		Cause: "No choice of versions satisfies everybody who asks for a package. The message says who asks for what, and why that does not go together.",
		Fix:   "Make one of the changes that the message names; each of them has been tried.",
	})
	ErrBudget = failure.Register(failure.Code{
		Name: "SolverBudget", Class: failure.Limit,
		Cause: "The search for versions took more steps than it may. The message names the packages whose constraints contradict each other most.",
		Fix:   "Ask for exact versions of the packages that the message names, or allow more steps.",
	})
	ErrCycle = failure.Register(failure.Code{
		Name: "DependencyCycle", Class: failure.Conflict,
		Cause: "Packages depend on each other in a circle, so that none of them can become healthy first.",
		Fix:   "Ask for a version of one of them that does not close the circle, or ask its author to remove the dependency.",
	})
)
