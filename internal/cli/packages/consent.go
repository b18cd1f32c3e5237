package packages

import (
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/planner"
)

// consentTo asks for consent to a plan. Without a terminal, it fails if the plan breaks dependents.
func consentTo(f terminal.ConsentFlag, env *terminal.Env, p *planner.Plan, what string) error {
	if err := p.BreakageError(); err != nil && !f.Yes && !env.Interactive() {
		return err
	}
	return f.Consent(env, what)
}
