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

// consents are the flags with which a user consents in advance to the effects that a
// plan shows.
type consents struct {
	AllowWebhooks bool `help:"Allow webhooks of the package to cover resources that it does not define: exactly those that the plan shows."`
	Adopt         bool `help:"Let the package adopt objects that exist and that belong to no package: exactly those that the plan shows. Uninstalling the package does not delete them."`
}

// given reports whether the user has consented to anything.
func (c consents) given() bool { return c.AllowWebhooks || c.Adopt }
