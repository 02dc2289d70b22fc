/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/diagnosis.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/attr.h"
#include "base/signals.h"
#include "supervise/sentence.h"
#include "supervise/symptom.h"
#include "supervise/traceback.h"
#include "supervise/transcript.h"

enum {
    TRACEBACK_REACH = 200, /* lines that may follow the traceback of a task's end */
    SYMPTOM_REACH = 60,    /* the last lines, among which symptoms are looked for */
    MESSAGE_REACH = 6,     /* lines of an exception's message that are looked at */
    MESSAGE_MOST = 320,    /* bytes of a program's own words in a sentence */
    LAST_LINE_MOST = 200,
    NAME_MOST = 128, /* bytes of a type, a task or a thread */
    PYTHON_FAILED = 1,
    MIB = 1024 * 1024,
    SHELL_SIGNAL_BASE = 128,
    SHELL_SIGNAL_MOST = 31,
};

static const char *const kind_names[] = {
    [DIAGNOSIS_EXIT_CODE] = "exit_code",
    [DIAGNOSIS_SIGNAL] = "signal",
    [DIAGNOSIS_NOT_STARTED] = "not_started",
    [DIAGNOSIS_LOST] = "lost",
    [DIAGNOSIS_NOT_FOUND] = "not_found",
    [DIAGNOSIS_NOT_EXECUTABLE] = "not_executable",
    [DIAGNOSIS_NO_INTERPRETER] = "no_interpreter",
    [DIAGNOSIS_NO_LIBRARY] = "no_library",
    [DIAGNOSIS_USAGE] = "usage",
    [DIAGNOSIS_PYTHON_EXCEPTION] = "python_exception",
    [DIAGNOSIS_PYTHON_MODULE] = "python_module",
    [DIAGNOSIS_PYTHON_SYNTAX] = "python_syntax",
    [DIAGNOSIS_OUT_OF_MEMORY] = "out_of_memory",
    [DIAGNOSIS_DISK_FULL] = "disk_full",
    [DIAGNOSIS_ADDRESS_IN_USE] = "address_in_use",
    [DIAGNOSIS_UNREACHABLE] = "unreachable",
    [DIAGNOSIS_PEER_LOST] = "peer_lost",
    [DIAGNOSIS_COLLECTIVE] = "collective",
    [DIAGNOSIS_GPU] = "gpu",
    [DIAGNOSIS_ASSERTION] = "assertion",
    [DIAGNOSIS_ABORT] = "abort",
    [DIAGNOSIS_SEGMENTATION_FAULT] = "segmentation_fault",
};
static_assert(ARRAY_LEN(kind_names) == DIAGNOSIS_KIND_COUNT, "every kind has a name");

const char *diagnosis_kind_name(enum diagnosis_kind kind) {
    assert(kind < DIAGNOSIS_KIND_COUNT);
    return kind_names[kind];
}

/* One diagnosis in the making. */
struct inquiry {
    const struct task_end *end;
    enum output_extent extent;
    struct transcript transcript;
    struct tracebacks tracebacks;
    struct sentence sentence; /* the one in out */
    struct diagnosis *out;
};

static void set_hint(struct diagnosis *out, const char *text) {
    text_copy(out->hint, sizeof out->hint, text ? slice_of(text) : (struct slice){ 0 });
}

static void set_place(struct diagnosis_place *out, const struct frame *frame) {
    const bool is_module = slice_is(frame->function, "<module>");

    out->line = frame->line;
    text_copy(out->file, sizeof out->file, frame->file);
    text_copy(out->function, sizeof out->function,
              is_module ? (struct slice){ 0 } : frame->function);
}

static void set_places(struct diagnosis *out, const struct frame *user,
                       const struct frame *raised) {
    set_place(&out->place, user->line ? user : raised);
    if (user->line && (user->line != raised->line || !slice_equal(user->file, raised->file)))
        set_place(&out->raised, raised);
}

/* The signal that ended the task, or, by the convention of shells, what the task ran; 0: none. */
static int signal_of(const struct task_end *end) {
    const int shells = end->detail - SHELL_SIGNAL_BASE;

    if (end->kind == TASK_SIGNALLED)
        return end->detail;
    return shells > 0 && shells <= SHELL_SIGNAL_MOST ? shells : 0;
}

/* "exited with code 3", "was ended by signal 9 (SIGKILL)" */
static void say_end(struct inquiry *inquiry) {
    const int detail = inquiry->end->detail;
    const struct signal_text name = signal_name(signal_of(inquiry->end));

    if (inquiry->end->kind == TASK_SIGNALLED) {
        say(&inquiry->sentence, " was ended by ");
        say(&inquiry->sentence, signal_text(detail).text);
        return;
    }
    say_number(&inquiry->sentence, " exited with code ", detail);
    if (name.text[0]) {
        say(&inquiry->sentence, " (128 + the signal ");
        say(&inquiry->sentence, name.text);
        say(&inquiry->sentence, ")");
    }
}

static const struct {
    int number;
    enum diagnosis_kind kind;
    bool is_crash; /* what it wrote before may be the reason */
    const char *phrase;
    const char *hint;
} signals[] = {
    { SIGSEGV, DIAGNOSIS_SEGMENTATION_FAULT, true, ": segmentation fault",
      "PYTHONFAULTHANDLER=1 makes Python say where" },
    { SIGABRT, DIAGNOSIS_ABORT, true, ": it aborted itself", NULL },
    { SIGBUS, DIAGNOSIS_SIGNAL, true, ": bus error",
      "a full /dev/shm is the usual reason: df -h /dev/shm" },
    { SIGILL, DIAGNOSIS_SIGNAL, true, ": illegal instruction",
      "a library was built for a newer processor than this machine's" },
    { SIGFPE, DIAGNOSIS_SIGNAL, true, ": an integer was divided by zero", NULL },
    { SIGKILL, DIAGNOSIS_SIGNAL, false, "",
      "if nobody killed it, the kernel may have, for lack of memory: dmesg tells" },
    { SIGXCPU, DIAGNOSIS_SIGNAL, false, ": it used up its processor time (ulimit -t)", NULL },
    { SIGXFSZ, DIAGNOSIS_SIGNAL, false, ": a file grew past its limit (ulimit -f)", NULL },
};

static bool is_crash(int number) {
    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        if (signals[i].number == number)
            return signals[i].is_crash;
    return number == 0;
}

/* What the exception adds to the sentence: ": " between its type and its message. */
static void say_exception(struct inquiry *inquiry, const struct traceback *one) {
    say_most(&inquiry->sentence, one->type, NAME_MOST);
    if (one->message.n || one->message_more.n)
        say(&inquiry->sentence, ": ");
    say_most(&inquiry->sentence, one->message, MESSAGE_MOST);
    if (one->message.n && one->message_more.n)
        say(&inquiry->sentence, " ");
    if (one->message.n < MESSAGE_MOST)
        say_most(&inquiry->sentence, one->message_more, MESSAGE_MOST - one->message.n);
}

/* Does the exception say so little that its cause is worth telling? */
static bool is_generic(const struct traceback *one) {
    static const char *const types[] = { "RuntimeError", "Exception", "BaseException",
                                         "SystemError" };

    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (slice_is(one->type, types[i]))
            return true;
    return one->message.n == 0 && one->message_more.n == 0;
}

static bool same_exception(const struct traceback *a, const struct traceback *b) {
    return slice_equal(a->type, b->type) && slice_equal(a->message, b->message);
}

/* The row that fits the exception's words, and the line that it fits. */
static const struct symptom *symptom_of(const struct inquiry *inquiry, const struct traceback *one,
                                        struct slice *line) {
    const struct transcript *text = &inquiry->transcript;

    for (size_t i = one->end; i < text->n_lines && i < one->end + MESSAGE_REACH; i++) {
        const struct symptom *symptom;

        if (i > one->end && (text->lines[i].n == 0 || slice_has(text->lines[i], "Traceback (")))
            break;
        *line = text->lines[i];
        symptom = symptom_find(*line, 0);
        if (symptom)
            return symptom;
    }
    return NULL;
}

static enum diagnosis_kind kind_of_type(struct slice type) {
    static const struct {
        const char *type;
        enum diagnosis_kind kind;
    } kinds[] = {
        { "SyntaxError", DIAGNOSIS_PYTHON_SYNTAX }, { "IndentationError", DIAGNOSIS_PYTHON_SYNTAX },
        { "TabError", DIAGNOSIS_PYTHON_SYNTAX },    { "AssertionError", DIAGNOSIS_ASSERTION },
        { "KeyboardInterrupt", DIAGNOSIS_SIGNAL },
    };

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (slice_is(type, kinds[i].type))
            return kinds[i].kind;
    return DIAGNOSIS_PYTHON_EXCEPTION;
}

static void apply_symptom(struct diagnosis *out, const struct symptom *symptom, struct slice line) {
    out->kind = symptom->kind;
    out->blame = symptom->blame;
    symptom_hint(symptom, line, out->hint, sizeof out->hint);
}

/* The group that the traceback is drawn within, or itself. */
static int outermost(const struct tracebacks *all, int i) {
    int group = i;

    while (group >= 0 && slice_ends(all->list[group].prefix, "| "))
        group--;
    return group >= 0 && slice_ends(all->list[group].prefix, "+ ") ? group : i;
}

/* The exception that explains a generic one, or -1. */
static int find_cause(const struct tracebacks *all, int i) {
    int cause = -1;

    if (i + 1 < all->n && all->list[i + 1].link == LINK_MEMBER)
        return i + 1;
    while (i >= 0 && is_generic(&all->list[i]) && all->list[i].linked >= 0)
        cause = i = all->list[i].linked;
    return cause;
}

/* The last traceback that can be the reason: the program's own before those of threads and
 * children. -1: there is none. */
static int find_reason(const struct inquiry *inquiry) {
    const struct tracebacks *all = &inquiry->tracebacks;

    for (int wanted = TRACEBACK_OF_PROGRAM; wanted < TRACEBACK_OF_NOBODY; wanted++)
        for (int i = all->n - 1; i >= 0; i--)
            if (all->list[i].owner == (enum traceback_owner)wanted &&
                inquiry->transcript.n_lines - all->list[i].end <= TRACEBACK_REACH)
                return outermost(all, i);
    return -1;
}

/* "worker.2 raised", "worker.2 ran out of memory:", "worker.2 exited with code 3 after its thread
 * loader raised" */
static void say_who(struct inquiry *inquiry, const struct traceback *one, const char *phrase) {
    if (one->owner == TRACEBACK_OF_PROGRAM) {
        say(&inquiry->sentence, " ");
        say(&inquiry->sentence, phrase ? phrase : "raised");
        say(&inquiry->sentence, phrase ? ": " : " ");
        return;
    }
    say_end(inquiry);
    say(&inquiry->sentence,
        one->owner == TRACEBACK_OF_THREAD ? " after its thread " : " after its process ");
    say_most(&inquiry->sentence, one->owner_name, NAME_MOST);
    say(&inquiry->sentence, " raised ");
}

static bool explain_by_exception(struct inquiry *inquiry) {
    const struct tracebacks *all = &inquiry->tracebacks;
    const int reason = find_reason(inquiry);
    const struct traceback *one, *cause = NULL, *place;
    const struct symptom *symptom;
    struct slice line;
    int at;

    if (reason < 0)
        return false;
    if (signal_of(inquiry->end) == SIGINT && !slice_is(all->list[reason].type, "KeyboardInterrupt"))
        return false;
    one = place = &all->list[reason];
    at = find_cause(all, reason);
    if (at >= 0)
        cause = &all->list[at];
    if (one->linked >= 0 && same_exception(one, &all->list[one->linked])) {
        place = &all->list[one->linked]; /* a pool raises again what its worker raised */
        cause = NULL;
    }
    symptom = symptom_of(inquiry, one, &line);
    if (!symptom && cause)
        symptom = symptom_of(inquiry, cause, &line);

    inquiry->out->kind = kind_of_type(one->type);
    if (symptom)
        apply_symptom(inquiry->out, symptom, line);
    say_who(inquiry, one, symptom ? symptom->phrase : NULL);
    say_exception(inquiry, one);
    if (cause) {
        say(&inquiry->sentence, cause->link == LINK_MEMBER ? ", first " : ", caused by ");
        say_exception(inquiry, cause);
        place = cause->raised.line ? cause : place;
    }
    say_place(&inquiry->sentence, &place->user, &place->raised);
    set_places(inquiry->out, &place->user, &place->raised);
    if (one->owner == TRACEBACK_OF_PROGRAM &&
        (inquiry->end->kind == TASK_SIGNALLED || inquiry->end->detail != PYTHON_FAILED)) {
        say(&inquiry->sentence, ", then");
        say_end(inquiry);
    }
    return true;
}

/* The words of a line that matter: without what() of a C++ exception and the like. */
static struct slice telling_part(struct slice line) {
    line = slice_trim(line);
    if (slice_starts(line, "what():"))
        line = slice_trim(slice_skip(line, strlen("what():")));
    return line;
}

/* "terminate called after throwing an instance of 'std::runtime_error'", and below it "what():  …"
 */
static bool say_cpp_exception(struct inquiry *inquiry, size_t at) {
    static const char mark[] = "terminate called after throwing an instance of '";
    const struct transcript *text = &inquiry->transcript;
    const ptrdiff_t start = slice_find(text->lines[at], mark);
    struct slice type;

    if (start == SLICE_NOWHERE)
        return false;
    type = slice_skip(text->lines[at], (size_t)start + strlen(mark));
    say_most(&inquiry->sentence, slice_head(type, type.n - slice_ends(type, "'")), NAME_MOST);
    for (size_t i = at + 1; i < text->n_lines && i < at + MESSAGE_REACH; i++)
        if (slice_starts(slice_trim(text->lines[i]), "what():")) {
            say(&inquiry->sentence, ": ");
            say_most(&inquiry->sentence, telling_part(text->lines[i]), MESSAGE_MOST);
            break;
        }
    return true;
}

/* "prog: step.c:12: step: Assertion `n > 0' failed." */
static void place_assertion(struct diagnosis *out, struct slice line) {
    struct frame frame = { 0 };
    ptrdiff_t at = slice_find(line, ": Assertion `");

    if (at == SLICE_NOWHERE)
        return;
    line = slice_head(line, (size_t)at);
    at = slice_find_last(line, ": ");
    if (at == SLICE_NOWHERE)
        return;
    frame.function = slice_skip(line, (size_t)at + 2);
    line = slice_head(line, (size_t)at);
    at = slice_find_last(line, ":");
    for (size_t i = (size_t)(at + 1); i < line.n && frame.line < 10000000; i++)
        frame.line = frame.line * 10 + ((unsigned)line.text[i] - '0') % 10;
    line = slice_head(line, at == SLICE_NOWHERE ? 0 : (size_t)at);
    frame.file = slice_skip(line, (size_t)(slice_find_last(line, " ") + 1));
    if (frame.file.n && frame.line)
        set_place(&out->place, &frame);
}

/* faulthandler prints the frames of the thread that failed, the innermost first. */
static void place_fault(struct inquiry *inquiry) {
    const struct transcript *text = &inquiry->transcript;
    struct frame user = { 0 }, raised = { 0 }, frame;
    size_t i = text->n_lines;

    while (i > 0 && !(slice_starts(text->lines[i - 1], "Current thread ") &&
                      slice_ends(text->lines[i - 1], "(most recent call first):")))
        i--;
    if (i == 0)
        return;
    for (; i < text->n_lines && call_site_read(text->lines[i], &frame); i++) {
        if (!raised.line)
            raised = frame;
        if (!user.line && !frame_is_library(&frame))
            user = frame;
    }
    if (!raised.line)
        return;
    say_place(&inquiry->sentence, &user, &raised);
    set_places(inquiry->out, &user, &raised);
    if (inquiry->out->kind == DIAGNOSIS_SEGMENTATION_FAULT)
        set_hint(inquiry->out, NULL); /* it was how to learn the place */
}

static bool is_warning(struct slice line) {
    return slice_has(line, "WARN") || slice_has(line, "Warning") || slice_starts(line, "[W");
}

/* The known line that is nearest to the end. Not all that looks like a failure is one: warnings of
 * attempts that are made again are passed over. */
static const struct symptom *find_symptom(const struct inquiry *inquiry, size_t *at) {
    const struct transcript *text = &inquiry->transcript;
    const int code = inquiry->end->kind == TASK_EXITED ? inquiry->end->detail : 0;

    for (size_t i = text->n_lines; i-- > 0 && text->n_lines - i <= SYMPTOM_REACH;) {
        const struct symptom *symptom =
            is_warning(text->lines[i]) ? NULL : symptom_find(text->lines[i], code);

        if (symptom) {
            *at = i;
            return symptom;
        }
    }
    return NULL;
}

/* "bash: line 1: python: command not found", "env: 'python': No such file or directory", "'python'
 * was not found in PATH". A path is no name that PATH could lack. */
static void name_program(struct diagnosis *out, struct slice line) {
    static const char *const marks[] = { ": command not found", ": not found",
                                         ": No such file or directory", " was not found in PATH" };
    static const char *const quotes[] = { "'", "\"", "\xe2\x80\x98", "\xe2\x80\x99" };
    ptrdiff_t end = SLICE_NOWHERE, colon;

    for (size_t i = 0; i < ARRAY_LEN(marks) && end == SLICE_NOWHERE; i++)
        end = slice_find_last(line, marks[i]);
    if (out->kind != DIAGNOSIS_NOT_FOUND || end == SLICE_NOWHERE)
        return;
    line = slice_head(line, (size_t)end);
    colon = slice_find_last(line, ": ");
    if (colon != SLICE_NOWHERE)
        line = slice_skip(line, (size_t)colon + 2);
    line = slice_trim(line);
    for (size_t i = 0; i < ARRAY_LEN(quotes); i++) {
        if (slice_starts(line, quotes[i]))
            line = slice_skip(line, strlen(quotes[i]));
        if (slice_ends(line, quotes[i]))
            line = slice_head(line, line.n - strlen(quotes[i]));
    }
    if (line.n > 0 && line.n < sizeof out->program && !slice_has(line, "/") &&
        !slice_has(line, " "))
        text_copy(out->program, sizeof out->program, line);
}

static bool explain_by_symptom(struct inquiry *inquiry) {
    size_t at;
    const struct symptom *symptom = find_symptom(inquiry, &at);
    struct slice line;

    if (!symptom)
        return false;
    line = inquiry->transcript.lines[at];
    apply_symptom(inquiry->out, symptom, line);
    name_program(inquiry->out, line);
    say(&inquiry->sentence, " ");
    say(&inquiry->sentence, symptom->phrase);
    say(&inquiry->sentence, ": ");
    if (!say_cpp_exception(inquiry, at))
        say_most(&inquiry->sentence, telling_part(line), MESSAGE_MOST);
    place_assertion(inquiry->out, line);
    if (symptom->kind == DIAGNOSIS_SEGMENTATION_FAULT)
        place_fault(inquiry);
    say(&inquiry->sentence, ", then");
    say_end(inquiry);
    return true;
}

static bool explain_by_signal(struct inquiry *inquiry) {
    const int number = signal_of(inquiry->end);

    if (number == 0)
        return false;
    inquiry->out->kind = DIAGNOSIS_SIGNAL;
    say_end(inquiry);
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        if (signals[i].number != number)
            continue;
        inquiry->out->kind = signals[i].kind;
        set_hint(inquiry->out, signals[i].hint);
        say(&inquiry->sentence, signals[i].phrase);
        if (signals[i].is_crash)
            place_fault(inquiry);
    }
    return true;
}

/* Nothing is known but the code; the last line is often what the program had to say. */
static void tell_exit_code(struct inquiry *inquiry) {
    const struct transcript *text = &inquiry->transcript;
    const bool is_whole = inquiry->extent == OUTPUT_WHOLE;

    inquiry->out->kind = DIAGNOSIS_EXIT_CODE;
    say_end(inquiry);
    for (size_t i = text->n_lines; i-- > 0 && inquiry->out->failed;) {
        if (text->lines[i].n == 0)
            continue;
        say(&inquiry->sentence,
            is_whole ? "; the last line it wrote: " : "; the last line of it that was kept: ");
        say_most(&inquiry->sentence, slice_trim(text->lines[i]), LAST_LINE_MOST);
        return;
    }
    if (inquiry->out->failed)
        say(&inquiry->sentence,
            is_whole ? " and wrote nothing" : "; nothing that it wrote could be kept");
}

static enum diagnosis_kind kind_of_not_started(const struct task_end *end, struct slice message) {
    const bool by_interpreter =
        slice_has(message, "interpreter") || slice_has(message, "dynamic loader");

    switch (end->detail) {
    case ENOENT: return by_interpreter ? DIAGNOSIS_NO_INTERPRETER : DIAGNOSIS_NOT_FOUND;
    case EACCES: return by_interpreter ? DIAGNOSIS_NO_INTERPRETER : DIAGNOSIS_NOT_EXECUTABLE;
    case ENOEXEC:
    case ENOTDIR: return DIAGNOSIS_NOT_EXECUTABLE;
    default: return DIAGNOSIS_NOT_STARTED;
    }
}

/* The message comes from the backend and may hold the name of any file. That the task could not be
 * started it may have said too. */
static void tell_not_started(struct inquiry *inquiry, const char *task) {
    static const char already[] = "cannot start ";
    const char *message = inquiry->end->message ? inquiry->end->message : "";
    struct transcript said;
    struct slice line = { 0 };

    transcript_init(&said, message, strlen(message));
    if (said.n_lines)
        line = said.lines[0];
    if (slice_starts(line, already) && slice_starts(slice_skip(line, strlen(already)), task) &&
        slice_starts(slice_skip(line, strlen(already) + strlen(task)), ": "))
        line = slice_skip(line, strlen(already) + strlen(task) + strlen(": "));
    inquiry->out->kind = kind_of_not_started(inquiry->end, line);
    name_program(inquiry->out, line);
    say(&inquiry->sentence, " could not be started");
    say(&inquiry->sentence, line.n ? ": " : "");
    say_most(&inquiry->sentence, line, DIAGNOSIS_SENTENCE_MOST);
    transcript_release(&said);
}

/* What became of it the backend alone knows. */
static void tell_lost(struct inquiry *inquiry) {
    const char *message = inquiry->end->message ? inquiry->end->message : "";
    struct transcript said;

    transcript_init(&said, message, strlen(message));
    inquiry->out->kind = DIAGNOSIS_LOST;
    say(&inquiry->sentence, " was lost");
    if (said.n_lines) {
        say(&inquiry->sentence, ": ");
        say_most(&inquiry->sentence, said.lines[0], DIAGNOSIS_SENTENCE_MOST);
    }
    transcript_release(&said);
}

static void say_memory_limit(struct inquiry *inquiry) {
    const struct task_limit *limit = &inquiry->end->limit;

    say(&inquiry->sentence, " because it used more than its memory limit of ");
    if (limit->limit >= MIB)
        say_number(&inquiry->sentence, "", limit->limit / MIB);
    else
        say(&inquiry->sentence, "less than 1");
    say(&inquiry->sentence, " MiB (resources.memory.limits)");
    set_hint(inquiry->out, "raise the limit, or let it use less memory: smaller batches, fewer "
                           "loader processes");
}

static void say_lack_of_memory(struct inquiry *inquiry) {
    say(&inquiry->sentence, " for lack of memory, though not at its own limit");
    if (inquiry->end->limit.peak >= MIB) {
        say_number(&inquiry->sentence, ": it had at most ", inquiry->end->limit.peak / MIB);
        say(&inquiry->sentence, " MiB");
    }
    set_hint(inquiry->out, "the machine, or the control group that myelin was started in, had no "
                           "more: let less run beside it, and request what it needs "
                           "(resources.memory.requests)");
}

/* The kernel itself says that it killed for memory; nothing that was written is surer. */
static bool explain_by_memory_limit(struct inquiry *inquiry) {
    const struct task_end *end = inquiry->end;

    if (end->limit.kind != TASK_LIMIT_MEMORY || !inquiry->out->failed)
        return false;
    inquiry->out->kind = DIAGNOSIS_OUT_OF_MEMORY;
    if (end->kind == TASK_SIGNALLED && end->detail == SIGKILL) {
        say(&inquiry->sentence, " was killed");
    } else {
        say_end(inquiry);
        say(&inquiry->sentence, " after a process of it was killed");
    }
    if (end->limit.scope == LIMIT_OUTSIDE)
        say_lack_of_memory(inquiry);
    else
        say_memory_limit(inquiry);
    return true;
}

/* Whatever it failed of, this it would not have met without the ceiling. */
static void mention_process_limit(struct inquiry *inquiry) {
    static const struct {
        const char *before, *after;
    } words[] = {
        [LIMIT_OF_TASK] = { "it was refused a process or thread, as it had ",
                            " of them; --max-processes sets how many a task with limits may have" },
        [LIMIT_OF_RUN] = { "a task of the run was refused a process or thread, as all of them had ",
                           " together; --max-processes gives each a ceiling of its own" },
    };
    struct sentence hint = { .text = inquiry->out->hint, .size = sizeof inquiry->out->hint };
    const struct task_limit *limit = &inquiry->end->limit;

    if (limit->kind != TASK_LIMIT_PROCESSES || !inquiry->out->failed)
        return;
    say(&hint, words[limit->scope].before);
    say_number(&hint, "", (long)limit->limit);
    say(&hint, words[limit->scope].after);
}

static void explain(struct inquiry *inquiry, const char *task) {
    const int number = signal_of(inquiry->end);
    const bool may_have_said = inquiry->out->failed && is_crash(number);
    const bool was_interrupted = number == SIGINT;

    if (inquiry->end->kind == TASK_NOT_STARTED)
        tell_not_started(inquiry, task);
    else if (inquiry->end->kind == TASK_LOST)
        tell_lost(inquiry);
    else if (explain_by_memory_limit(inquiry))
        return;
    else if ((may_have_said || was_interrupted) && explain_by_exception(inquiry))
        return;
    else if (may_have_said && explain_by_symptom(inquiry))
        return;
    else if (!explain_by_signal(inquiry))
        tell_exit_code(inquiry);
}

void diagnose(const char *task, const struct task_end *end, const char *output, size_t n,
              enum output_extent extent, struct diagnosis *out) {
    struct inquiry inquiry = {
        .end = end,
        .extent = extent,
        .sentence = { .text = out->sentence, .size = sizeof out->sentence },
        .out = out,
    };

    *out = (struct diagnosis){ .failed = end->kind != TASK_EXITED || end->detail != 0 };
    transcript_init(&inquiry.transcript, output, n);
    tracebacks_find(&inquiry.transcript, &inquiry.tracebacks);
    say_most(&inquiry.sentence, slice_of(task), NAME_MOST);
    explain(&inquiry, task);
    mention_process_limit(&inquiry);
    transcript_release(&inquiry.transcript);
}

bool diagnosis_is_echo(const struct diagnosis *culprit, const struct diagnosis *suspect) {
    return culprit->failed && suspect->failed && suspect->blame > culprit->blame;
}
