package remote

import (
	"net/http"
	"strings"
)

// Schemes of challenges.
const (
	basicScheme  = "basic"
	bearerScheme = "bearer"
)

// challenge is an authentication challenge of a registry (RFC 9110, "WWW-Authenticate").
type challenge struct {
	// scheme is in lower case.
	scheme string
	params map[string]string
}

// supportedChallenges returns the challenges of a response that a client can meet, those for a token first: a registry
// with several schemes can restrict the others.
func supportedChallenges(resp *http.Response) []challenge {
	all := parseChallenges(resp.Header.Values("WWW-Authenticate"))
	supported := make([]challenge, 0, len(all))
	for _, scheme := range []string{bearerScheme, basicScheme} {
		for _, c := range all {
			if c.scheme == scheme {
				supported = append(supported, c)
			}
		}
	}
	return supported
}

// parseChallenges parses the values of WWW-Authenticate. It skips invalid challenges.
func parseChallenges(values []string) []challenge {
	var all []challenge
	for _, v := range values {
		for v != "" {
			var c challenge
			if c, v = parseChallenge(v); c.scheme != "" {
				all = append(all, c)
			}
		}
	}
	return all
}

// parseChallenge parses one challenge and returns the rest of the text.
func parseChallenge(s string) (challenge, string) {
	s = strings.TrimLeft(s, " \t,")
	end := strings.IndexAny(s, " \t,")
	if end < 0 {
		return challenge{scheme: strings.ToLower(s)}, ""
	}
	c := challenge{scheme: strings.ToLower(s[:end]), params: map[string]string{}}
	rest := s[end:]
	for {
		name, value, after, ok := parseParam(rest, " \t,")
		if !ok {
			return c, strings.TrimLeft(rest, " \t,")
		}
		if _, twice := c.params[name]; !twice {
			c.params[name] = value
		}
		rest = after
	}
}

// parseParam reads name=token or name="quoted", with white space around the equals sign. One of the separators ends it.
func parseParam(s, separators string) (name, value, rest string, ok bool) {
	s = strings.TrimLeft(s, separators)
	name, value, ok = strings.Cut(s, "=")
	name = strings.TrimRight(name, " \t")
	if !ok || name == "" || strings.ContainsAny(name, separators+`"`) {
		return "", "", "", false
	}
	name, s = strings.ToLower(name), strings.TrimLeft(value, " \t")
	if !strings.HasPrefix(s, `"`) {
		end := endOf(s, separators)
		return name, s[:end], s[end:], true
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return name, b.String(), s[i+1:], true
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		b.WriteByte(s[i])
	}
	return name, b.String(), "", true
}
