package access

import (
	"slices"
	"strings"
)

// Action is an operation on a repository.
type Action string

// The actions.
const (
	// Read reads content, and finds it.
	Read Action = "read"
	// Publish pushes a new version to a repository that exists.
	Publish Action = "publish"
	// Create pushes the first version of a repository.
	Create Action = "publish-new"
	// Yank changes the status of a version.
	Yank Action = "yank"
	// Delete deletes versions.
	Delete Action = "delete"
)

// Actions returns all actions.
func Actions() []Action { return []Action{Read, Publish, Create, Yank, Delete} }

// implies reports whether permission for an action includes another one. A client that pushes also asks for the
// content that exists, and a client that creates a repository also pushes the next content to it.
func (a Action) implies(other Action) bool {
	return a == other || other == Read || a == Create && other == Publish
}

// Scope is a set of repositories with the actions on them.
type Scope struct {
	// Repositories are names of repositories, prefixes that end with "/*", or "*" for all.
	Repositories []string `json:"repositories"`
	Actions      []Action `json:"actions"`
}

// Covers reports whether a scope includes an action on a repository.
func (s Scope) Covers(repository string, a Action) bool {
	return slices.ContainsFunc(s.Actions, func(given Action) bool { return given.implies(a) }) &&
		slices.ContainsFunc(s.Repositories, func(pattern string) bool { return matches(pattern, repository) })
}

func matches(pattern, repository string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(repository, prefix)
	}
	return pattern == repository
}

func covers(scopes []Scope, repository string, a Action) bool {
	return slices.ContainsFunc(scopes, func(s Scope) bool { return s.Covers(repository, a) })
}

// Check returns an error for a scope that is empty, or that has an unknown action or a malformed pattern.
func (s Scope) Check() error {
	if len(s.Repositories) == 0 || len(s.Actions) == 0 {
		return ErrScope.New(nil, "a scope needs a repository and an action")
	}
	for _, a := range s.Actions {
		if !slices.Contains(Actions(), a) {
			return ErrScope.New(nil, "unknown action %q", a).WithDo("Use one of: %s.", list(Actions()))
		}
	}
	for _, pattern := range s.Repositories {
		name, _ := strings.CutSuffix(pattern, "/*")
		if pattern != "*" && !ValidRepository(name) {
			return ErrScope.New(nil, "%q is neither a repository nor a prefix such as acme/*", pattern)
		}
	}
	return nil
}

func list(actions []Action) string {
	words := make([]string, 0, len(actions))
	for _, a := range actions {
		words = append(words, string(a))
	}
	return strings.Join(words, ", ")
}
