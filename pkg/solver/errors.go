package solver

import "github.com/xpkg-dev/xpkg/pkg/errcode"

// Errors of Solve.
var (
	ErrUnsolvable = errcode.Code{
		Name: "Unsolvable", Class: errcode.Conflict,
		Cause: "No combination of versions satisfies all requirements. The message lists the requirements that contradict each other.",
		Fix:   "Make one of the changes that the message suggests. Each of them has been verified to resolve the conflict.",
	}
	ErrBudget = errcode.Code{
		Name: "SolverBudget", Class: errcode.Limit,
		Cause: "The search for versions exceeded its limit. The message lists the packages with the most conflicts.",
		Fix:   "Request exact versions of the packages that the message names, or raise the limit.",
	}
	ErrCycle = errcode.Code{
		Name: "DependencyCycle", Class: errcode.Conflict,
		Cause: "Packages depend on each other in a cycle that no versions avoid, so that none of them can become healthy first.",
		Fix:   "Ask the author of one of the packages to remove the dependency that closes the cycle.",
	}
)
