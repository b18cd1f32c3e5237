package certificates

import (
	"crypto/x509"
	"slices"
	"strings"
	"time"
)

// Action is one write.
type Action string

// Actions. Actions before Publish write the CA Secret.
const (
	// Create creates a CA that signs at once, because no other CA exists.
	Create Action = "create"
	// Restore restores the certificate of the CA from a bundle.
	Restore Action = "restore"
	// Adopt trusts CAs that signed certificates in use.
	Adopt Action = "adopt"
	// Announce creates the next CA, which signs nothing yet.
	Announce Action = "announce"
	// MarkCarried records the time from which every Secret has the bundle.
	MarkCarried Action = "mark carried"
	// Unmark removes that record, because a Secret does not have the bundle.
	Unmark Action = "unmark"
	// Promote makes the next CA the signing one.
	Promote Action = "promote"
	// MarkReplaced records the time from which one CA has signed all certificates.
	MarkReplaced Action = "mark replaced"
	// Retire removes former CAs from the bundle.
	Retire Action = "retire"
	// Publish writes the bundle and keeps the certificate.
	Publish Action = "publish"
	// Issue writes a new certificate with its key, and the bundle.
	Issue Action = "issue"
	// Own writes the owners of a Secret.
	Own Action = "own"
)

// Step is one write and its reason.
type Step struct {
	Action Action
	// Secret is the name of the Secret.
	Secret string
	// Certificates are the certificates of Restore, Adopt and Retire.
	Certificates []*x509.Certificate
	Why          string
}

// Policy contains the inputs of a plan that are not in the Secrets.
type Policy struct {
	// Overlap is the time between the distribution of a bundle and the first use of a certificate that needs it, and
	// between the replacement of the last certificate of a CA and the removal of that CA from the bundle.
	Overlap time.Duration
	// Settled reports whether all users of the Secrets have loaded their content.
	Settled bool
	// LeavesOnly leaves CA rotations to the process that reads all leaves.
	LeavesOnly bool
}

const (
	// settleInterval is the interval between checks of Settled; it is shorter if the overlap is shorter.
	settleInterval = time.Minute
	// foreignInterval is the interval between reads of Secrets that another program maintains.
	foreignInterval = time.Hour
)

// Plan returns the next writes, and the time of the next call if no Secret changes before. The steps can be carried
// out in order without another read, and after each of them every bundle in use covers every certificate in use. An
// empty plan means that no step is due until that time.
//
// Leaves are the requested certificates and, during a rotation of the CA, all other certificates in use.
func Plan(now time.Time, ca CA, leaves []Leaf, policy Policy) ([]Step, time.Time) {
	p := planner{now: now, ca: ca, policy: policy}
	for _, l := range leaves {
		if l.Foreign || l.Taken {
			p.at(now.Add(foreignInterval))
			continue
		}
		p.leaves = append(p.leaves, l)
	}
	if ca.Foreign {
		p.at(now.Add(foreignInterval))
	}
	stages := []func() []Step{p.ensureCA, p.adopt, p.announce, p.secrets, p.exchange, p.retire}
	if policy.LeavesOnly {
		stages = []func() []Step{p.ensureCA, p.adopt, p.secrets}
	}
	for _, stage := range stages {
		if steps := stage(); len(steps) > 0 {
			return steps, now
		}
	}
	return nil, p.next
}

type planner struct {
	now    time.Time
	ca     CA
	leaves []Leaf
	policy Policy
	next   time.Time
}

// at records the time at which a step becomes due.
func (p *planner) at(t time.Time) {
	if p.next.IsZero() || t.Before(p.next) {
		p.next = t
	}
}

func (p *planner) root(action Action, why string, certificates ...*x509.Certificate) []Step {
	return []Step{{Action: action, Secret: RootSecret, Why: why, Certificates: certificates}}
}

// ensureCA returns the step that restores or creates the signing certificate.
func (p *planner) ensureCA() []Step {
	if p.ca.Current != nil {
		return nil
	}
	for _, l := range p.leaves {
		for _, c := range append(slices.Clone(l.Bundle), p.ca.Trusted...) {
			if p.ca.Orphan != nil && belongs(p.ca.Orphan, c) && !p.now.After(c.NotAfter) {
				return p.root(Restore, "the CA has its key, but no certificate", c)
			}
		}
	}
	return p.root(Create, "no CA can sign certificates")
}

// adopt trusts the issuers of certificates in use: after the CA Secret was replaced or lost, its certificates stay in
// use until they are replaced.
func (p *planner) adopt() []Step {
	trusted := p.ca.Bundle(p.now)
	var unknown []*x509.Certificate
	for _, l := range p.leaves {
		if l.Certificate != nil && !slices.ContainsFunc(trusted, l.Issuer.Equal) {
			unknown = append(unknown, l.Issuer)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return p.root(Adopt, "certificates in use were signed by a former CA", distinct(unknown)...)
}

// announce begins a rotation of the CA.
func (p *planner) announce() []Step {
	if p.ca.Foreign || p.ca.Next != nil {
		return nil
	}
	due := renewAt(p.ca.Current.Certificate)
	switch {
	case p.ca.Rotate:
		return p.root(Announce, "a rotation of the CA was requested")
	case !p.now.Before(due):
		return p.root(Announce, "two thirds of the CA's lifetime have passed")
	}
	p.at(due)
	return nil
}

// secrets distributes the bundle, and then creates and renews certificates that do not depend on a rotation.
func (p *planner) secrets() []Step {
	bundle := fingerprint(p.ca.Bundle(p.now)...)
	var publish, others []Step
	for _, l := range p.leaves {
		if l.Certificate != nil && fingerprint(l.Bundle...) != bundle {
			publish = append(publish, Step{Action: Publish, Secret: l.Secret, Why: "the CA bundle has changed"})
		} else if step, ok := p.own(l); ok {
			others = append(others, step)
		}
	}
	if len(publish) > 0 && p.ca.Carried.holds(bundle, p.now) {
		return p.root(Unmark, "a Secret no longer has the bundle")
	}
	return append(publish, others...)
}

// own returns the steps for one requested certificate.
func (p *planner) own(l Leaf) (Step, bool) {
	switch {
	case l.Required == nil:
		return Step{}, false
	case l.Certificate == nil:
		return Step{Action: Issue, Secret: l.Secret, Why: l.Fault}, true
	case !p.current(l):
		// A certificate that is in use waits until its new issuer is known.
	case len(l.Unnamed) > 0:
		return Step{Action: Issue, Secret: l.Secret, Why: "it lacks the name " + strings.Join(l.Unnamed, ", ")}, true
	case p.now.Before(renewAt(l.Certificate)):
		p.at(renewAt(l.Certificate))
	case p.longer(l):
		return Step{Action: Issue, Secret: l.Secret, Why: "two thirds of its lifetime have passed"}, true
	}
	if l.Unowned {
		return Step{Action: Own, Secret: l.Secret, Why: "it lacks an owner"}, true
	}
	return Step{}, false
}

// longer reports whether a new certificate would be valid longer. It is not if both end with their CA.
func (p *planner) longer(l Leaf) bool {
	return l.Certificate.NotAfter.Before(p.ca.Current.Certificate.NotAfter)
}

// current reports whether the current CA signed a certificate.
func (p *planner) current(l Leaf) bool { return l.Issuer.Equal(p.ca.Current.Certificate) }

func (p *planner) stale() []Leaf {
	return slices.DeleteFunc(slices.Clone(p.leaves), func(l Leaf) bool { return l.Certificate == nil || p.current(l) })
}

// exchange rotates the CA and then replaces the certificates of the former CA.
func (p *planner) exchange() []Step {
	stale := p.stale()
	if p.ca.Next == nil && len(stale) == 0 {
		return nil
	}
	bundle := fingerprint(p.ca.Bundle(p.now)...)
	if !p.ca.Carried.holds(bundle, p.now) {
		return p.root(MarkCarried, "every Secret has the bundle")
	}
	if !p.passed(p.ca.Carried) {
		return nil
	}
	if p.ca.Next != nil {
		return p.root(Promote, "the next CA is trusted everywhere")
	}
	steps := make([]Step, len(stale))
	for i, l := range stale {
		steps[i] = Step{Action: Issue, Secret: l.Secret, Why: "it was signed by a former CA"}
	}
	return steps
}

// retire ends a rotation of the CA.
func (p *planner) retire() []Step {
	retired := p.ca.retired(p.now)
	if len(retired) == 0 || p.ca.Next != nil || len(p.stale()) > 0 {
		return nil
	}
	if !p.ca.Replaced.holds(fingerprint(p.ca.Current.Certificate), p.now) {
		return p.root(MarkReplaced, "no certificate of a former CA remains")
	}
	if !p.passed(p.ca.Replaced) {
		return nil
	}
	return p.root(Retire, "no certificate of a former CA is in use", retired...)
}

// passed reports whether the overlap since a mark has passed and Settled holds.
func (p *planner) passed(m Mark) bool {
	due := m.Since.Add(p.policy.Overlap)
	if p.now.Before(due) {
		p.at(due)
		return false
	}
	if !p.policy.Settled {
		p.at(p.now.Add(max(time.Second, min(settleInterval, p.policy.Overlap))))
		return false
	}
	return true
}
