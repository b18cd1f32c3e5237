package access

import "strings"

const (
	groupPrefix = "group:"
	// IssuedPrefix is the prefix of the names of users of OIDC issuers, so that an issuer cannot name a local user.
	IssuedPrefix = "oidc:"
)

// Subject is the sender of a request. The zero value is an anonymous client.
type Subject struct {
	// User is the name of an authenticated user, and empty for others.
	User string
	// Groups are the groups of the user, as an issuer reports them. The policy names them as "group:NAME".
	Groups []string
	// Grants allow actions independently of the rules of the policy. A CI identity has grants and no user.
	Grants []Scope
	// Origins are the entries of the policy that accept an identity of an issuer; see [Policy.Accepts]. Subjects of tokens
	// have none.
	Origins []Origin
	// Limits restrict the subject: each of them must cover an action, except to read a public repository. A token has the
	// limit of its scope.
	Limits [][]Scope
	// Requested is the scope that a client requested for a bearer token, as a further limit; nil means no limit. A request
	// beyond it can succeed with another bearer token.
	Requested *[]Scope
}

// Anonymous returns the subject of a request without credentials.
func Anonymous() Subject { return Subject{} }

// IsAnonymous reports whether the subject has no identity.
func (s Subject) IsAnonymous() bool { return s.User == "" && len(s.Groups) == 0 && len(s.Grants) == 0 }

// Limited returns the subject with one more limit.
func (s Subject) Limited(scopes []Scope) Subject {
	s.Limits = append(s.Limits[:len(s.Limits):len(s.Limits)], scopes)
	return s
}

// WithRequested returns the subject of a bearer token for the scope that a client requested.
func (s Subject) WithRequested(scopes []Scope) Subject {
	s.Requested = &scopes
	return s
}

// WithoutRequested returns the subject of a new bearer token for another scope.
func (s Subject) WithoutRequested() Subject {
	s.Requested = nil
	return s
}

func (s Subject) isWithinLimits(repository string, a Action) bool {
	for _, limit := range s.Limits {
		if !covers(limit, repository, a) {
			return false
		}
	}
	return true
}

func (s Subject) isRequested(repository string, a Action) bool {
	return s.Requested == nil || covers(*s.Requested, repository, a)
}

// is reports whether the subject is one of the members, which are names of users or "group:NAME".
func (s Subject) is(members []string) bool {
	for _, member := range members {
		if s.User != "" && member == s.User && !strings.HasPrefix(member, groupPrefix) {
			return true
		}
		for _, group := range s.Groups {
			if member == groupPrefix+group {
				return true
			}
		}
	}
	return false
}
