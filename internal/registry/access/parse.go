package access

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

const (
	// largestPolicy is the maximum size of a configuration in bytes.
	largestPolicy = 1 << 20
	// mostEntries is the maximum length of a list in a configuration.
	mostEntries = 10000
)

// Parse returns the policy in a YAML document. Unknown fields are errors, so that a misspelled "private" makes
// nothing public, and so is a document without a value.
func Parse(document []byte) (*Policy, error) {
	if len(document) > largestPolicy {
		return nil, ErrPolicy.New(nil, "the access configuration has more than %d bytes", largestPolicy)
	}
	if isEmpty(document) {
		return nil,
			ErrPolicy.New(nil, "the access configuration is empty, which would allow every client to read everything").
				WithDo("Write the rules, or {} for none.")
	}
	p := &Policy{}
	if err := yaml.UnmarshalStrict(document, p); err != nil {
		return nil, ErrPolicy.New(err, "cannot parse the access configuration")
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	return p, nil
}

// isEmpty reports whether a document has no value. A file is empty while a program writes it, and after a write to a
// full disk.
func isEmpty(document []byte) bool {
	var value any
	return yaml.Unmarshal(document, &value) == nil && value == nil
}

func (p *Policy) check() error {
	if max(len(p.Rules), len(p.Groups), len(p.Issuers), len(p.Administrators), len(p.ReservedNames)) > mostEntries {
		return ErrPolicy.New(nil, "a list has more than %d entries", mostEntries)
	}
	seen := map[string]bool{}
	for i, r := range p.Rules {
		if !ValidRepository(r.Prefix) {
			return ErrPolicy.New(nil, "rules[%d].prefix: %q is not the name of a repository", i, r.Prefix)
		}
		if seen[r.Prefix] {
			return ErrPolicy.New(nil, "rules[%d].prefix: there is another rule for %q", i, r.Prefix)
		}
		seen[r.Prefix] = true
		if slices.Contains(r.Owners, "") || slices.Contains(r.Readers, "") {
			return ErrPolicy.New(nil, "rules[%d]: a name of a user is empty", i)
		}
	}
	if err := p.checkGroups(); err != nil {
		return err
	}
	for i, issuer := range p.Issuers {
		if err := issuer.check(); err != nil {
			return ErrPolicy.New(err, "issuers[%d] is not valid", i)
		}
	}
	return p.checkNamesOfIssuers()
}

// checkGroups checks the owners of API groups, because an index cannot have others.
func (p *Policy) checkGroups() error {
	owners := make([]catalog.GroupOwner, 0, len(p.Groups))
	for i, g := range p.Groups {
		if g.Group == "" || !ValidRepository(g.Owner) {
			return ErrPolicy.New(nil, "groups[%d]: an API group and a repository are required", i)
		}
		owners = append(owners, catalog.GroupOwner{Group: g.Group, Owner: "localhost/" + g.Owner})
	}
	if _, err := catalog.SortOwners(owners); err != nil {
		return ErrPolicy.New(err, "groups are not valid")
	}
	return nil
}

// checkNamesOfIssuers checks that users of different issuers have different names: otherwise a user of one issuer would
// be the user with the same name of another one.
func (p *Policy) checkNamesOfIssuers() error {
	type source struct{ url, claim string }
	names := map[string]source{}
	for i, issuer := range p.Issuers {
		if issuer.UserClaim == "" {
			continue
		}
		this := source{issuer.URL, issuer.UserClaim}
		other, known := names[issuer.Name]
		if !known {
			other, known = names[""]
		}
		if !known && issuer.Name == "" {
			for _, other = range names {
				known = true
			}
		}
		if known && other != this {
			return ErrPolicy.New(nil,
				"issuers[%d]: its users could have the names of users of %s: give each issuer with a userClaim a name of its own, such as name: corp; "+
					"rules then name its users as oidc:corp/USER, and its groups as group:corp/GROUP", i, other.url)
		}
		names[issuer.Name] = this
	}
	return nil
}

func (i Issuer) check() error {
	u, err := url.Parse(i.URL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return ErrPolicy.New(nil, "url: %q is not the address of an issuer", i.URL)
	}
	if u.Scheme == "http" && !oci.IsLoopback(u.Hostname()) {
		return ErrPolicy.New(
			nil, "url: %q is not protected by TLS, so any machine on the way could replace the keys of the issuer", i.URL,
		)
	}
	if i.Name != "" && !validPart(i.Name) {
		return ErrPolicy.New(nil, "name: %q is not a name of lower-case letters, digits and single separators", i.Name)
	}
	if i.Audience == "" {
		return ErrPolicy.New(nil, "an audience is required: without it, a token for another service would be accepted")
	}
	for _, identity := range i.Identities {
		if len(identity.Claims) == 0 {
			return ErrPolicy.New(
				nil, "the identity for %q has no claims, so every token of the issuer would match", identity.Repository,
			)
		}
		if !ValidRepository(identity.Repository) {
			return ErrPolicy.New(nil, "%q is not the name of a repository", identity.Repository)
		}
		if err := identity.Scope().Check(); err != nil {
			return err
		}
	}
	return nil
}

// Scope returns the scope of an identity.
func (i Identity) Scope() Scope {
	actions := i.Actions
	if len(actions) == 0 {
		actions = []Action{Publish, Create}
	}
	return Scope{Repositories: []string{i.Repository}, Actions: actions}
}

// Subject returns the subject of verified claims: the grants of the CI identities that match, or a user.
// It returns false if neither applies.
func (i Issuer) Subject(claims map[string]any) (Subject, bool) {
	var s Subject
	for _, identity := range i.Identities {
		if identity.matches(claims) {
			s.Grants = append(s.Grants, identity.Scope())
			s.Origins = append(s.Origins, i.origin(identity))
		}
	}
	if len(s.Grants) > 0 {
		return s, true
	}
	name, _ := claims[i.UserClaim].(string)
	if i.UserClaim == "" || name == "" {
		return Subject{}, false
	}
	if i.UserClaim == emailClaim && !isVerified(claims) {
		return Subject{}, false
	}
	s.User = IssuedPrefix + i.qualified(name)
	s.Origins = []Origin{i.origin(Identity{})}
	groups, _ := claims[i.GroupsClaim].([]any)
	for _, g := range groups {
		if group, ok := g.(string); ok {
			s.Groups = append(s.Groups, i.qualified(group))
		}
	}
	return s, true
}

// Relevant returns the claims that decide about the subject, for a message.
func (i Issuer) Relevant(claims map[string]any) string {
	names := map[string]bool{}
	for _, identity := range i.Identities {
		for name := range identity.Claims {
			names[name] = true
		}
	}
	if i.UserClaim != "" {
		names[i.UserClaim] = true
	}
	if i.UserClaim == emailClaim {
		names[verifiedClaim] = true
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if value, ok := claims[name]; ok {
			out = append(out, fmt.Sprintf("%s=%q", name, fmt.Sprint(value)))
		} else if name != verifiedClaim {
			out = append(out, name+" is missing")
		}
	}
	return strings.Join(out, ", ")
}

// qualified returns the name of a user or of a group in rules: NAME/USER for an issuer with a name. The name of an
// issuer has no slash, so the names of different issuers differ.
func (i Issuer) qualified(name string) string {
	if i.Name == "" {
		return name
	}
	return i.Name + "/" + name
}

// emailClaim is the claim that identifies users only if the issuer has verified it.
const emailClaim = "email"

// verifiedClaim is the claim that states whether an address is verified.
const verifiedClaim = "email_verified"

// isVerified reports whether claims have an address that the issuer has verified, or do not state it: some issuers only
// have verified ones. Some issuers state it as a string.
func isVerified(claims map[string]any) bool {
	verified, stated := claims[verifiedClaim]
	return !stated || verified == true || verified == "true"
}

// Origin identifies an entry of a policy that accepts identities of an issuer, by the hash of its content.
type Origin string

// origin returns the origin of the subjects of an identity of the issuer, or of its users for the zero identity.
func (i Issuer) origin(identity Identity) Origin {
	i.Identities = []Identity{identity}
	raw, err := json.Marshal(i)
	if err != nil {
		return "" // It has only strings. No policy accepts it.
	}
	hash := sha256.Sum256(raw)
	return Origin(base64.RawURLEncoding.EncodeToString(hash[:]))
}

// Accepts reports whether the policy still has the entries to which a subject of an issuer owes its identity.
func (p *Policy) Accepts(s Subject) bool {
	if len(s.Origins) == 0 {
		return true
	}
	current := map[Origin]bool{}
	for _, i := range p.Issuers {
		current[i.origin(Identity{})] = i.UserClaim != ""
		for _, identity := range i.Identities {
			current[i.origin(identity)] = true
		}
	}
	return !slices.ContainsFunc(s.Origins, func(o Origin) bool { return !current[o] })
}

func (i Identity) matches(claims map[string]any) bool {
	for name, want := range i.Claims {
		if got, ok := claims[name].(string); !ok || got != want {
			return false
		}
	}
	return len(i.Claims) > 0
}
