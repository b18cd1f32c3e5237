package registry

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/registry/tokens"
)

type tokenCmd struct {
	Create tokenCreateCmd `cmd:"" help:"Create a token and print it."`
	List   tokenListCmd   `cmd:"" aliases:"ls" help:"List the tokens."`
	Revoke tokenRevokeCmd `cmd:"" help:"Revoke a token. Clients that use it are refused at once."`
}

type folderFlag struct {
	Folder string `name:"dir" required:"" placeholder:"DIR" help:"Folder of the server."`
}

func (f folderFlag) open() *tokens.Store { return tokens.Open(f.Folder, nil) }

type tokenCreateCmd struct {
	folderFlag
	User       string        `default:"admin" placeholder:"NAME" help:"User that the token authenticates. Default is admin, the administrator without another one in access.yaml."`
	Repository []string      `required:"" placeholder:"REPOSITORY" help:"Repository, prefix such as acme/*, or * for all. Can be given more than once."`
	Action     []string      `required:"" placeholder:"ACTION" complete:"action" help:"Action: read, publish, publish-new, yank or delete. Can be given more than once."`
	Expires    time.Duration `default:"720h" placeholder:"DURATION" help:"Lifetime of the token, at most 8784h. Default is 720h."`
	Note       string        `placeholder:"TEXT" help:"Purpose of the token, for the list."`
}

// Run creates a token. The token is the only line on standard output.
func (c *tokenCreateCmd) Run(env *terminal.Env) error {
	scope := access.Scope{Repositories: c.Repository}
	for _, a := range c.Action {
		scope.Actions = append(scope.Actions, access.Action(a))
	}
	if strings.ContainsAny(c.User, ":") || c.User == "" {
		return terminal.ErrUsage.New(nil, "%q is not the name of a user of a token: it is empty or contains a colon", c.User)
	}
	secret, t, err := c.open().Create(c.User, c.Note, scope, c.Expires)
	if err != nil {
		return err
	}
	fmt.Fprintf(
		env.Stderr, "Created the token %s for %s. It expires on %s and is not shown again.\n", t.ID, terminal.Safe(t.User),
		expiryOf(t.Expires, c.Expires),
	)
	_, err = fmt.Fprintln(env.Stdout, secret)
	return err
}

// expiryOf returns the date of an expiry, and its time for a short lifetime.
func expiryOf(expires time.Time, lifetime time.Duration) string {
	if lifetime < 48*time.Hour {
		return expires.UTC().Format("2006-01-02 at 15:04:05 UTC")
	}
	return expires.Format(time.DateOnly)
}

type tokenListCmd struct {
	folderFlag
	view.OutputFlag
}

// tokenView is a token in the output of a command. It has no hash.
type tokenView struct {
	ID      string       `json:"id"`
	User    string       `json:"user"`
	Scope   access.Scope `json:"scope"`
	Note    string       `json:"note,omitempty"`
	Created time.Time    `json:"created"`
	Expires time.Time    `json:"expires"`
	Expired bool         `json:"expired"`
}

// Run lists the tokens.
func (c *tokenListCmd) Run(env *terminal.Env) error {
	all, err := c.open().List()
	if err != nil {
		return err
	}
	now, views := time.Now(), []tokenView{}
	for _, t := range all {
		views = append(views, tokenView{t.ID, t.User, t.Scope, t.Note, t.Created, t.Expires, !now.Before(t.Expires)})
	}
	return c.Print(env.Stdout, views, func(w io.Writer) {
		if len(views) == 0 {
			fmt.Fprintln(w, "There are no tokens.")
			return
		}
		var rows [][]string
		for _, v := range views {
			expires := expiryOf(v.Expires, v.Expires.Sub(v.Created))
			if v.Expired {
				expires = "expired"
			}
			actions := make([]string, 0, len(v.Scope.Actions))
			for _, a := range v.Scope.Actions {
				actions = append(actions, string(a))
			}
			rows = append(rows, []string{
				v.ID, v.User, strings.Join(v.Scope.Repositories, ","), strings.Join(actions, ","), expires, v.Note,
			})
		}
		view.WriteTable(w, []string{"ID", "USER", "REPOSITORIES", "ACTIONS", "EXPIRES", "NOTE"}, rows)
	})
}

type tokenRevokeCmd struct {
	folderFlag
	ID string `arg:"" help:"Identifier of the token."`
}

// Run revokes a token.
func (c *tokenRevokeCmd) Run(env *terminal.Env) error {
	if err := c.open().Revoke(c.ID); err != nil {
		return err
	}
	return env.Say("Revoked %s\n", terminal.Safe(c.ID))
}
