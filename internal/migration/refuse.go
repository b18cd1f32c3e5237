package migration

import (
	"errors"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Codes of migrations.
var (
	ErrRefused = errcode.Code{
		Name: "MigrationRefused", Class: errcode.Conflict,
		Cause: "The state of the cluster does not allow the migration. Nothing was changed, unless the migration had started: it then continues when the command runs again.",
		Fix:   "Follow the message, which lists all reasons with their remedies, and run the command again.",
	}
	ErrNoCore = errcode.Code{
		Name: "CrossplaneNotFound", Class: errcode.NotFound,
		Cause: "The namespace has no Deployment of Crossplane.",
		Fix:   "Name the namespace of Crossplane with --namespace.",
	}
	ErrBlocked = errcode.Code{
		Name: "MigrationBlocked", Class: errcode.Unauthorized,
		Cause: "The manager lacks permissions that the packages need, so the migration cannot continue. The packages keep what Crossplane gave them.",
		Fix:   "Grant the permissions that the message names.",
	}
	ErrUnfinished = errcode.Code{
		Name: "MigrationUnfinished", Class: errcode.Timeout,
		Cause: "A step of the migration was not complete within the time of --wait.",
		Fix:   "Correct the reason in the message.",
	}
)

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code {
	return []errcode.Code{
		ErrBlocked,
		ErrNoCore,
		ErrRefused,
		ErrUnfinished,
	}
}

// Finding is a reason that prevents a migration.
type Finding struct {
	// Problem is a clause, and Remedy an imperative one, both without a full stop.
	Problem, Remedy string
}

// Refuse returns the error that lists all findings, or nil without any.
func Refuse(findings []Finding) error {
	if len(findings) == 0 {
		return nil
	}
	lines := make([]string, len(findings))
	for i, f := range findings {
		lines[i] = f.Problem + ": " + f.Remedy
	}
	return ErrRefused.New(errors.New(strings.Join(lines, "; ")), "the migration was refused")
}
