//go:build linux

package session

import (
	"math"
	"slices"
	"time"

	"goprof/profile"
	"goprof/sampler/events"
	"goprof/sampler/look"
	"goprof/vmstructs"
)

// A hit at the end of a buffer shows where objects of a class are allocated, but not how many bytes the class has: a
// program that repeats itself may move in step with its buffers (sampler/events/buffer.go). The bytes of each class
// come from two other sources:
//
//   - The contents of buffers, by class, from copies of buffers that were drawn by lot.
//   - The objects outside of buffers, by class: each object is drawn by lot separately.
//
// All samples at the ends of buffers together stand for a number of bytes. The two sources show how these bytes are
// divided among the classes. goprof holds back recent samples, and gives each class's bytes to the held samples of the
// class. So each sample stands for bytes that its class allocated around that time, and the sums of classes are right
// whatever the program does.

const (
	// heldOfClass bounds the held samples of a class. At this number, the older half is released and gets no more bytes.
	// So each sample takes part in two payments, and samples of a class stand for similar amounts.
	heldOfClass = 16
	// maxHeld bounds the held samples of all classes.
	maxHeld         = 2048
	maxShareClasses = 1 << 14
)

// noStackSeen is the frame under a class without any sample.
const noStackSeen = "[no stack seen]"

func unseenFrame() profile.Frame {
	return profile.Frame{Func: &profile.Func{Name: noStackSeen}, Kind: profile.Gap, BCI: -1}
}

// allocShares divides a recording's allocated bytes among classes.
type allocShares struct {
	contents *events.Contents
	objects  *vmstructs.Objects
	number   int // of the event of new buffers
	part     *eventPart
	values   bool // the profile counts bytes
	classes  map[string]*allocClass
	order    []*allocClass // in the order of their first samples
	held     int
	met      []*vmstructs.ObjectClass // the classes in one copy

	stood, squares float64 // bytes that samples at ends stand for: the sum, and the sum of squares
	inside, beside float64 // bytes in copied buffers, and of objects outside of buffers, weighted
	insideSquares  float64 // sum of the squares of each copy's bytes
	paid           float64
	unseen         profile.Frame

	unmet, unmetBytes int64 // classes without a sample, and their bytes
}

type allocClass struct {
	name           string
	stood          float64 // bytes that its samples at ends stand for, by their own amounts
	inside, beside float64
	squares, cross float64 // over all copies: of the class's bytes squared, and of its bytes times the copy's bytes
	paid           float64
	held           []heldSample
}

// heldSample is a sample that may get more bytes.
type heldSample struct {
	at     profile.Place
	amount float64 // the bytes that it stands for by itself
	bytes  int64   // the bytes that it was given
	sample profile.Sample
	stack  profile.Stack
}

// allocShares returns an empty account. It is nil if the recording's event is not about buffers.
func (r *recording) allocShares(plan *EventPlan) *allocShares {
	if !r.habits.buffers {
		return nil
	}
	i := slices.IndexFunc(plan.list, func(e events.Event) bool { return e.Retired != nil })
	if i < 0 {
		return nil
	}
	objects, err := r.VM.NewObjects()
	if err != nil {
		return nil
	}
	return &allocShares{contents: events.NewContents(r.memory), objects: objects, number: i,
		part:    &plan.parts[i],
		values:  plan.Unit != profile.Samples,
		classes: map[string]*allocClass{},
		unseen:  unseenFrame()}
}

func (a *allocShares) buffers() <-chan *events.Buffer {
	if a == nil {
		return nil
	}
	return a.contents.Buffers()
}

// forgetClasses is called about once a second: a new class may be at the address of an unloaded one.
func (a *allocShares) forgetClasses() {
	if a != nil {
		a.objects.Forget()
	}
}

// correct replaces the samples' own amounts with the bytes that were paid to them. counts may have no events yet.
func (a *allocShares) correct(counts []profile.EventCount) {
	if a != nil && a.number < len(counts) {
		counts[a.number].Stood += int64(a.paid - a.stood)
	}
}

// class returns the account of a class. It is nil if there are too many classes.
func (a *allocShares) class(name string) *allocClass {
	c := a.classes[name]
	if c == nil && len(a.classes) < maxShareClasses {
		c = &allocClass{name: name}
		a.classes[name], a.order = c, append(a.order, c)
	}
	return c
}

// takeBuffer adds up the contents of a buffer. A copy that cannot be walked to its end is ignored.
func (r *recording) takeBuffer(b *events.Buffer) {
	a := r.shares
	defer a.contents.Done(b)
	if r.hints[b.TID].Skip {
		return
	}
	a.met = a.met[:0]
	all := uint64(0)
	next, err := a.objects.Walk(b.Addr, b.Bytes, func(_ uint64, class *vmstructs.ObjectClass, size uint64) {
		if class.Filler {
			return
		}
		if class.Sum == 0 {
			a.met = append(a.met, class)
		}
		class.Sum += size
		all += size
	})
	defer func() {
		for _, class := range a.met {
			class.Sum = 0
		}
	}()
	if err != nil || next != b.Addr+uint64(len(b.Bytes)) {
		a.contents.Fail()
		a.objects.Forget()
		return
	}
	a.addCopy(float64(all) * b.Weight)
	for _, class := range a.met {
		if c := a.class(r.events.className(class.Name, nil)); c != nil {
			c.addCopy(float64(class.Sum)*b.Weight, float64(all)*b.Weight)
		}
	}
}

// addCopy counts the bytes of one copied buffer.
func (a *allocShares) addCopy(bytes float64) {
	a.inside, a.insideSquares = a.inside+bytes, a.insideSquares+bytes*bytes
}

// addCopy counts one copied buffer: the bytes of the class, and all bytes.
func (c *allocClass) addCopy(bytes, all float64) {
	c.inside, c.squares, c.cross = c.inside+bytes, c.squares+bytes*bytes, c.cross+bytes*all
}

// takeBeside counts an object that was allocated outside of buffers.
func (a *allocShares) takeBeside(class string, hit *look.Hit) {
	n := float64(hit.Own) * hit.Weight
	a.beside += n
	if c := a.class(class); c != nil {
		c.beside += n
	}
}

// bytes returns how many of the bytes that samples stand for belong to a class. It is 0 if that is not known.
func (a *allocShares) bytes(c *allocClass) float64 {
	held := a.contents.Held()
	if a.inside == 0 || held+a.beside == 0 {
		return 0
	}
	return a.stood * (c.inside/a.inside*held + c.beside) / (held + a.beside)
}

// hold keeps a sample at the end of a buffer, which gets its bytes later. It returns false if the sample must be
// counted at once.
func (r *recording) hold(snap *look.Look, root string, stack *profile.Stack, class string) bool {
	a := r.shares
	if class == "" || class == profile.UnknownClass {
		return false
	}
	c := a.class(class)
	if c == nil {
		return false
	}
	amount := float64(snap.Event.Amount)
	h := heldSample{at: r.profile.AddAt(root, stack, 1, 0), amount: amount}
	if t := r.timed; t != nil {
		h.stack = *stack
		h.stack.Frames = slices.Clone(stack.Frames)
		h.sample = profile.Sample{At: t.clock.at(snap.When), Thread: r.threadOf(snap, stack), Count: 1,
			Event: a.part.of, About: true, NoState: true, Link: linkOf(&snap.Context)}
	}
	a.stood, a.squares = a.stood+amount, a.squares+amount*amount
	c.stood += amount
	c.held = append(c.held, h)
	a.held++
	switch {
	case len(c.held) >= heldOfClass:
		r.pay(c)
		r.letGo(c, heldOfClass/2)
	case a.held >= maxHeld:
		r.releaseHeld()
	}
	return true
}

// letGo hands the n oldest held samples of a class to the sink. They get no more bytes.
func (r *recording) letGo(c *allocClass, n int) {
	for i := range c.held[:n] {
		h := &c.held[i]
		if r.timed != nil {
			h.sample.Stack, h.sample.Bytes = &h.stack, h.bytes
			r.timed.sink.Sample(&h.sample)
		}
	}
	c.held = slices.Delete(c.held, 0, n)
	r.shares.held -= n
}

// due returns how many bytes of a class have not been paid yet. If the contents of no buffer are known, each sample
// stands for its own amount.
func (a *allocShares) due(c *allocClass) float64 {
	if a.inside == 0 {
		return c.stood - c.paid
	}
	return max(a.bytes(c)-c.paid, 0)
}

// pay gives the held samples of a class the bytes that are due. All classes together get no more bytes than samples
// stand for: a class that got too much at first, when little was known, gives nothing back.
func (r *recording) pay(c *allocClass) {
	a := r.shares
	r.payOut(c, int64(min(a.due(c), a.stood-a.paid)))
}

// payOut divides bytes among the held samples of a class, in proportion to their amounts.
func (r *recording) payOut(c *allocClass, bytes int64) {
	amounts := 0.0
	for i := range c.held {
		amounts += c.held[i].amount
	}
	if bytes <= 0 || amounts == 0 {
		return
	}
	r.shares.pay(c, bytes)
	for i := range c.held {
		h := &c.held[i]
		part := int64(float64(bytes) * h.amount / amounts)
		if i == len(c.held)-1 {
			part = bytes
		}
		bytes, amounts = bytes-part, amounts-h.amount
		h.bytes += part
		r.addBytes(h.at, part)
	}
}

func (a *allocShares) pay(c *allocClass, bytes int64) {
	c.paid += float64(bytes)
	a.paid += float64(bytes)
}

// addBytes adds bytes to a stack, if the profile counts bytes.
func (r *recording) addBytes(at profile.Place, bytes int64) {
	if r.shares.values {
		r.profile.Again(at, 0, time.Duration(bytes))
	}
}

func (r *recording) payAll() {
	if r.shares == nil {
		return
	}
	for _, c := range r.shares.order {
		r.pay(c)
	}
}

// releaseHeld releases all held samples. It must be called before places of stacks become invalid.
func (r *recording) releaseHeld() {
	if r.shares == nil {
		return
	}
	r.payAll()
	for _, c := range r.shares.order {
		r.letGo(c, len(c.held))
	}
}

// endShares takes the remaining buffers, pays all classes, and adds the classes without any sample.
func (r *recording) endShares() {
	a := r.shares
	if a == nil {
		return
	}
	for more := true; more; {
		select {
		case b := <-a.contents.Buffers():
			r.takeBuffer(b)
		default:
			more = false
		}
	}
	due := 0.0
	for _, c := range a.order {
		due += a.due(c)
	}
	// If a class has got too much, the others share the remaining bytes.
	left := min(max(a.stood-a.paid, 0)/max(due, 1), 1)
	for _, c := range a.order {
		bytes := int64(a.due(c) * left)
		if len(c.held) == 0 && bytes > 0 {
			r.addUnseen(c, bytes)
		}
		r.payOut(c, bytes)
		r.letGo(c, len(c.held))
	}
}

// addUnseen adds bytes of a class without a stack.
func (r *recording) addUnseen(c *allocClass, bytes int64) {
	a := r.shares
	stack := profile.Stack{Frames: []profile.Frame{r.events.frame(c.name, a.part.kind), a.unseen}}
	a.pay(c, bytes)
	a.unmet, a.unmetBytes = a.unmet+1, a.unmetBytes+bytes
	r.addBytes(r.profile.AddAt("", &stack, 0, 0), bytes)
	if t := r.timed; t != nil {
		t.sample = profile.Sample{At: t.clock.at(now()), Stack: &stack, Bytes: bytes, Event: a.part.of, About: true,
			NoState: true}
		t.sink.Sample(&t.sample)
	}
}

// unreadNames are the reasons why the contents of a buffer are not known.
var unreadNames = [events.NumUnread]string{
	events.UnreadCollected: "a collection took it before it was full",
	events.UnreadLate:      "a collection came before goprof",
	events.UnreadLarge:     "too large",
	events.UnreadBusy:      "goprof could not keep up",
	events.UnreadFailed:    "what it held could not be made out",
}

// contents returns how goprof knows the bytes of classes. It is nil for other events.
func (r *recording) contents(plan *EventPlan) *profile.Contents {
	if !slices.ContainsFunc(plan.parts, func(p eventPart) bool { return p.of.Name == profile.EventAlloc }) {
		return nil
	}
	a := r.shares
	switch {
	case !r.habits.buffers:
		return &profile.Contents{Why: "a recording that goes on for good does not read what buffers held"}
	case a == nil:
		return &profile.Contents{Why: "this JVM does not say what buffers held"}
	}
	out := &profile.Contents{Of: int64(a.contents.Held()), Unmet: a.unmet, UnmetBytes: a.unmetBytes}
	out.Buffers, out.Bytes = a.contents.Copied()
	for why, name := range unreadNames {
		if n := a.contents.Unread(events.Unread(why)); n > 0 {
			if out.Unread == nil {
				out.Unread = map[string]int64{}
			}
			out.Unread[name] = n
		}
	}
	if a.inside > 0 && a.stood > 0 {
		out.Apart, out.InStep = a.apart()
	}
	return out
}

// A difference of a class's shares is more than chance if it exceeds sureErrors standard errors plus sureShare.
const (
	sureErrors = 4
	sureShare  = 0.005
)

// apart compares each class's share by the ends of buffers with its real share. It returns the sum of the differences,
// and whether they are more than chance.
func (a *allocShares) apart() (apart float64, sure bool) {
	for _, c := range a.order {
		share, ends := a.bytes(c)/a.stood, c.stood/a.stood
		apart += math.Abs(share-ends) / 2
		chance := max(share*(1-share), 0) * a.squares / (a.stood * a.stood)
		in := c.inside / a.inside
		chance += max(c.squares-2*in*c.cross+in*in*a.insideSquares, 0) / (a.inside * a.inside)
		sure = sure || math.Abs(share-ends) > sureErrors*math.Sqrt(chance)+sureShare
	}
	return apart, sure
}
