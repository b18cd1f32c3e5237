package access

import (
	"slices"
	"strings"
)

// Policy is the access configuration of a registry server. The zero value allows every client to read everything,
// and only administrators to write.
type Policy struct {
	// Administrators may do everything.
	Administrators []string `json:"administrators,omitempty"`
	// Private requires credentials for repositories without a rule.
	Private bool `json:"private,omitempty"`
	// Rules apply to the repositories below their prefixes. The longest prefix applies alone.
	Rules []Rule `json:"rules,omitempty"`
	// Groups are API groups with the repositories that own them.
	Groups []Group `json:"groups,omitempty"`
	// ReservedNames are first parts of repository names that no client can create, in addition to the
	// built-in ones.
	ReservedNames []string `json:"reservedNames,omitempty"`
	// Issuers are OIDC issuers whose identities the server accepts.
	Issuers []Issuer `json:"issuers,omitempty"`
}

// Rule is the access to the repositories with a prefix. Owners and readers are names of users, or "group:NAME".
type Rule struct {
	// Prefix is a repository name. The rule applies to this repository and to the ones below it.
	Prefix string `json:"prefix"`
	// Private requires read permission: only owners and readers find and read the repositories.
	Private bool `json:"private,omitempty"`
	// Readers may read private repositories.
	Readers []string `json:"readers,omitempty"`
	// Owners may read and change the repositories.
	Owners []string `json:"owners,omitempty"`
}

// Group is an API group with its owner: a repository, or a prefix of repositories.
type Group struct {
	Group string `json:"group"`
	Owner string `json:"owner"`
}

// Issuer is an OIDC issuer.
type Issuer struct {
	// URL is the issuer in the tokens; it serves the discovery document.
	URL string `json:"url"`
	// Name is part of the names of its users and groups in rules, "oidc:NAME/USER" and "group:NAME/GROUP". Of several
	// issuers with users, each needs one.
	Name string `json:"name,omitempty"`
	// Audience is the required audience of the tokens.
	Audience string `json:"audience"`
	// Identities map tokens of CI systems to repositories.
	Identities []Identity `json:"identities,omitempty"`
	// UserClaim is the claim with the name of a user, such as "email"; users of this issuer cannot log in if it is
	// empty.
	UserClaim string `json:"userClaim,omitempty"`
	// GroupsClaim is the claim with the groups of a user.
	GroupsClaim string `json:"groupsClaim,omitempty"`
}

// Identity is a CI identity that may push to one repository.
type Identity struct {
	// Claims are required values of claims, such as {"repository": "acme/provider-boats"}.
	Claims     map[string]string `json:"claims"`
	Repository string            `json:"repository"`
	// Actions are the allowed actions; empty means publish and publish-new.
	Actions []Action `json:"actions,omitempty"`
}

// May reports whether a subject may perform an action on a repository. Every subject may read public repositories: the
// limits of a token hide nothing that clients without credentials read.
func (p *Policy) May(s Subject, repository string, a Action) bool {
	if !ValidRepository(repository) || !s.isRequested(repository, a) {
		return false
	}
	if a == Read && p.Partition(repository) == "" {
		return true
	}
	if !s.isWithinLimits(repository, a) {
		return false
	}
	if covers(s.Grants, repository, a) || s.is(p.Administrators) {
		return true
	}
	rule, ok := p.rule(repository)
	return ok && (s.is(rule.Owners) || a == Read && s.is(rule.Readers))
}

// IsAdministrator reports whether a subject is an administrator.
func (p *Policy) IsAdministrator(s Subject) bool { return s.is(p.Administrators) }

// rule returns the rule with the longest prefix of a repository.
func (p *Policy) rule(repository string) (Rule, bool) {
	longest := -1
	for i, r := range p.Rules {
		if isBelow(repository, r.Prefix) && (longest < 0 || len(r.Prefix) > len(p.Rules[longest].Prefix)) {
			longest = i
		}
	}
	if longest < 0 {
		return Rule{}, false
	}
	return p.Rules[longest], true
}

// isBelow reports whether a repository is a prefix itself, or below it.
func isBelow(repository, prefix string) bool {
	rest, ok := strings.CutPrefix(repository, prefix)
	return ok && (rest == "" || rest[0] == '/')
}

// Partition returns the part of the registry to which a repository belongs: empty for repositories that every client
// reads, and otherwise the prefix of its rule, or "*" without a rule. Each partition has an index of its own, so that
// neither the rank nor the count of a public package depends on private packages.
func (p *Policy) Partition(repository string) string {
	rule, ok := p.rule(repository)
	switch {
	case ok && rule.Private:
		return rule.Prefix
	case !ok && p.Private:
		return AllRepositories
	}
	return ""
}

// AllRepositories is the partition of repositories without a rule, if they are private.
const AllRepositories = "*"

// Partitions returns all partitions, in order, the public one first.
func (p *Policy) Partitions() []string {
	partitions := []string{""}
	if p.Private {
		partitions = append(partitions, AllRepositories)
	}
	for _, r := range p.Rules {
		if r.Private {
			partitions = append(partitions, r.Prefix)
		}
	}
	slices.Sort(partitions)
	return slices.Compact(partitions)
}

// Owner returns the owner of an API group, and false if the policy names none.
func (p *Policy) Owner(group string) (string, bool) {
	for _, g := range p.Groups {
		if g.Group == group {
			return g.Owner, true
		}
	}
	return "", false
}
