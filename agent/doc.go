// Package agent runs turns: it is the middle of fermata, between the faces (rpc, the terminal) and the transcript, the
// models and the tools. It promises semantics.md's P1 to P5: what a stop keeps, what a model is sent, what is told to whom
// and in which order. It knows no wire protocol and no model dialect; cmd wires those in through [Options].
//
// An [Agent] serves one client and any number of sessions; all its methods may be called from any goroutine. A [Turn] is
// owned by one goroutine, the one in [Turn.Run], or one of the agent's own when queued messages start it: it alone appends
// to the session's log, and appends before it tells anybody (invariant 1). Everybody else only marks a turn as stopped
// ([Turn.Stop]), gives it a [Message], and waits for it ([Turn.Done]).
//
// Cancelling the context of [Turn.Run] is a stop, with the context's cause as its cause: [ErrStopped], [ErrClientGone] or
// [ErrShutdown]. What a stop must finish (the commit, the settling of tools) runs on a context without that cancel.
//
// # Every ending
//
// How a turn can end: the rules, what clients are shown, what the log holds then, what the next model input holds, and
// the tests that guard it. A test of this comment (TestTheTableOfEndingsNamesRulesAndTestsThatBelongTogether) fails when
// a test named here is gone or does not guard the rules of its row. A name with .txtar is a case in
// cmd/fermata/testdata/stop, driven over the real binary.
//
// completed [P5]
//   - shown: all of it as it was said, then the end
//   - stored: the answer, complete and admitted, and the end in one transaction; before that each tool's result as it
//     came
//   - next: every answer of the turn and the results of its calls, verbatim
//   - tests: TestEveryEndingEndsTheTurnOnce/completed; TestEveryEndingEndsTheTurnOnce/completed after tools;
//     TestInputsOfASessionOnlyGrow
//
// completed after a try that failed [F2]
//   - shown: the failed try's text, that it is retracted, the next try's text from its beginning
//   - stored: each try is a request; what the failed one said is an attempt: a broken answer, withheld
//   - next: the answer of the try that succeeded, and nothing of the attempt
//   - tests: TestEveryEndingEndsTheTurnOnce/completed at the second try;
//     TestATryThatFailsInPassingIsRetractedAndTriedAgain
//
// completed while messages wait behind it [S10]
//   - shown: the end; then the turn that the messages start by themselves
//   - stored: each message as queued, then as delivered with the turn that they start; after tool results as delivered
//     within the running turn
//   - next: the messages as user messages, after the answer or after the tool results
//   - tests: TestWhatWaitsBehindATurnThatEndsByItselfStartsTheNext; TestAMessageIsDeliveredAfterTheNextToolResults
//
// stopped in the answer [P1 S3 S4 S11]
//   - shown: what was said so far, to the last delta that was sent; it stays
//   - stored: the answer, stopped and admitted, exactly those deltas; the end with their length and SHA-256
//   - next: the answer verbatim; the next user message begins with a notice that it was stopped, which is never said
//     again
//   - tests: in-the-answer.txtar; TestEveryEndingEndsTheTurnOnce/stopped in the answer;
//     TestAStopKeepsExactlyWhatWasShown/in the answer; TestAClientThatDoesNotReadDelaysNoStopAndLosesNothing
//
// stopped in the reasoning [P1 S4 S11]
//   - shown: the reasoning so far
//   - stored: the same as a stopped answer without text, admitted
//   - next: the reasoning verbatim as reasoning, where the dialect may send it unfinished (T2); the notice
//   - tests: in-the-reasoning.txtar; TestAStopKeepsExactlyWhatWasShown/in the reasoning
//
// stopped in a signed block of reasoning, or behind one [T1 T2 T3 S4]
//   - shown: the reasoning so far, and what was said behind it
//   - stored: each block as a part; one that had ended with its signature or encrypted form, journalled when that came; of
//     one that was cut, what it was to become
//   - next: the blocks that had ended, as they were issued; the one that was cut is in no input, and show model input says
//     so; the notice. The same for an attempt, of a failure or a kill, that is kept
//   - tests: in-a-signed-block.txtar; behind-signed-reasoning.txtar;
//     TestTheSignatureOfAFinishedBlockIsStoredWhenTheBlockEndsT3; TestAKilledDaemonLosesNoSignatureOfAFinishedBlockT3;
//     TestWhatGoesBackWithAPartIsJournalledWhenItCame
//
// stopped within a tool call [S5]
//   - shown: the text before the call
//   - stored: that text as the stopped answer; the call is void
//   - next: that text, no call, no result; the notice
//   - tests: within-a-call.txtar; TestAStopKeepsExactlyWhatWasShown/within a tool call
//
// stopped before the first word [S6]
//   - shown: nothing; the client is told silent, and offers the prompt for editing
//   - stored: the user's message and the end, silent; no answer
//   - next: the user's message; the next one begins with the notice that nothing had been said
//   - tests: before-the-first-token.txtar; TestEveryEndingEndsTheTurnOnce/stopped before a word;
//     TestAStopKeepsExactlyWhatWasShown/before the first token; TestASilentStopOffersThePromptForEditing
//
// stopped before the response headers [S6]
//   - shown: nothing; silent
//   - stored: as before the first word; the request is closed all the same
//   - next: as before the first word
//   - tests: before-the-headers.txtar; TestAStopKeepsExactlyWhatWasShown/before the response headers
//
// stopped after nothing but white space [S6]
//   - shown: the white space
//   - stored: as before the first word
//   - next: as before the first word
//   - tests: white-space-only.txtar; TestAStopKeepsExactlyWhatWasShown/after nothing but white space
//
// stopped right behind its start [S2]
//   - shown: nothing; silent
//   - stored: the user's message and the end; when the stop came first, not even a request
//   - next: as before the first word
//   - tests: start-and-stop-in-one-write.txtar; TestAStopRightBehindTheStartFindsIt
//
// stopped in the back-off [S12 F2]
//   - shown: the failed try's text, retracted; then the end
//   - stored: the attempt, withheld; the turn is stopped, not failed
//   - next: nothing of the attempt; the notice that the turn was stopped here
//   - tests: TestAStopInTheBackOffEndsTheTurnAndLeavesTheAttempt; TestEveryEndingEndsTheTurnOnce/stopped in the back-off
//
// stopped while one tool runs and one waits [S7 S8 S9 S14]
//   - shown: the output so far; the end with the state of each call
//   - stored: the running one's real result, stopped, with its output; a receipt not_started for the other; no process
//     is left
//   - next: the answer with its calls, the result and the receipt; the notice
//   - tests: one-tool-runs-one-waits.txtar; TestAStopSettlesTheToolsOfACompleteAnswer
//
// stopped while a tool does not come back [S7]
//   - shown: the end after the settle deadline of 5 s; the late result when it comes
//   - stored: a receipt unknown; later the real result, marked late
//   - next: the receipt; the late result in the next notice, once
//   - tests: TestAResultThatComesTooLateIsToldOnce
//
// stopped at the permission question [S7 S8 S14]
//   - shown: the question is withdrawn; the end
//   - stored: a receipt not_started, stopped by the user: not denied
//   - next: the answer with its call and the receipt; the notice
//   - tests: at-the-question.txtar; TestAStopAnswersThePermissionQuestion
//
// stopped between two answers [S6]
//   - shown: the first answer and its results; nothing of the second
//   - stored: the first answer and its results; the end, not silent
//   - next: the first answer and its results; the notice that the turn was stopped here
//   - tests: TestEveryEndingEndsTheTurnOnce/stopped before a word, after tools
//
// stopped while messages wait behind it [S10 S2]
//   - shown: the end, and the messages handed back in its report
//   - stored: each message as queued and as returned with the cause: a stop, the client gone, a shutdown, a failure
//   - next: nothing of them: they are never sent by themselves
//   - tests: messages-wait-behind-the-answer.txtar; message-at-the-question.txtar; message-and-stop-in-one-write.txtar;
//     TestAStopHandsBackWhatWaits; TestTheOrderInWhichMessageAndStopCameDecides
//
// stopped, and the stopped answer has checks [K6 S3]
//   - shown: the stop as without checks; then the verdicts, then the end
//   - stored: the stopped answer, and after the close each verdict and the admission that they come to
//   - next: the answer verbatim if all pass, else nothing of it; the notice says which
//   - tests: TestAStoppedAnswerIsCheckedAfterTheClose; TestAClientThatIsGoneWaitsForNoCheckOfAStoppedAnswer
//
// stopped while a complete answer is checked [K1 S14]
//   - shown: the whole answer, then the end, withheld
//   - stored: the answer, complete; the verdicts that came; an admission that withholds it, until a recheck (K5)
//   - next: nothing of the answer; the notices that it is withheld and that the turn was stopped
//   - tests: TestAStopCutsRunningChecksShort
//
// redirected while it runs [D2 D3 D4 D5]
//   - shown: the stop and its end, then the new turn
//   - stored: as for the stop; the new turn names the one whose course it replaces
//   - next: the stopped answer verbatim; the user's words behind the notice to revise it
//   - tests: TestARedirectOfARunningTurnStopsItAndGoesOnFromWhatWasSaid;
//     TestAStopOpensTheLaneAndARedirectGoesOnFromWhatWasShown
//
// redirected after its end [D2 D6]
//   - shown: the new turn as part of the same thread
//   - stored: the new turn names the stopped one; without a redirect it names none
//   - next: the notice to revise what is above, or, silent, that this replaces the request above; without a redirect the
//     notice of the stop
//   - tests: TestARedirectOfAnEndedTurnNamesIt; TestAStopKeepsExactlyWhatWasShown/in the answer
//
// stopped because the client is gone [S4 S14]
//   - shown: nobody is there; what was sent before counts as shown
//   - stored: as for a stop at that moment, cause client_gone; no process is left
//   - next: as for a stop at that moment
//   - tests: TestEveryEndingEndsTheTurnOnce/the client is gone; TestAClosedStdinStopsTheTurnAndLeavesNoProcess
//
// stopped by a shutdown [S4 S14]
//   - shown: the end, before the daemon exits
//   - stored: as for a stop at that moment, cause shutdown
//   - next: as for a stop at that moment
//   - tests: TestEveryEndingEndsTheTurnOnce/shutdown
//
// failed: the stream ends without its terminal event [F1 P5]
//   - shown: what was said, then the failure with its class
//   - stored: an attempt: the broken answer with its cause, withheld
//   - next: the user's message, nothing of the attempt; the notice that the answer broke off and is not shown
//   - tests: end-without-terminal-event.txtar; TestEveryEndingEndsTheTurnOnce/truncated;
//     TestAnAnswerThatBrokeOffIsKeptForPeopleAndFromTheModel/end of stream without the terminal event
//
// failed: the connection breaks, or is silent for too long [F1 P5]
//   - shown: as when the stream ends
//   - stored: as when the stream ends
//   - next: as when the stream ends
//   - tests: dropped-stream.txtar; TestEveryEndingEndsTheTurnOnce/a dropped connection;
//     TestAnAnswerThatBrokeOffIsKeptForPeopleAndFromTheModel/a dropped connection
//
// failed: an error event in the stream [F1 P5]
//   - shown: as when the stream ends, with what the provider said
//   - stored: as when the stream ends
//   - next: as when the stream ends
//   - tests: TestEveryEndingEndsTheTurnOnce/an error event; TestAnAnswerThatBrokeOffIsKeptForPeopleAndFromTheModel/an
//     error event
//
// failed: the provider rejects the request, or the key [F2]
//   - shown: the failure at once, with what the provider said; it is not tried again
//   - stored: the user's message, the request with its status, the end; no answer
//   - next: the user's message; the notice that the turn ended with an error before there was an answer
//   - tests: TestEveryEndingEndsTheTurnOnce/rejected; TestEveryEndingEndsTheTurnOnce/a wrong key;
//     TestOnlyWhatMayPassIsTriedAgainAndNeverTooSoon/the request is wrong
//
// failed: the tries are used up [F2 F3]
//   - shown: each try's text and that it is retracted; the last one's failure
//   - stored: a request for each try, an attempt for each that said something; the end with the last one's class
//   - next: none of the attempts; the notice
//   - tests: TestEveryEndingEndsTheTurnOnce/the tries are used up; TestWhenTheTriesAreUsedUpTheTurnHasFailed
//
// failed after tools [F5]
//   - shown: the earlier steps, then the failure
//   - stored: the earlier answers and their results stay; what broke off is an attempt
//   - next: the earlier answers and their results; the notice
//   - tests: TestEveryEndingEndsTheTurnOnce/failed after tools; TestAnAnswerThatBrokeOffIsKeptForPeopleAndFromTheModel
//
// failed: max_steps [F5]
//   - shown: every step, then that the limit of model requests is reached
//   - stored: every answer and every result; the end
//   - next: every answer and every result; the notice
//   - tests: TestEveryEndingEndsTheTurnOnce/max_steps
//
// failed: the transcript cannot be written [C1 C2 P1 P4]
//   - shown: no delta that is not durable; the failure, cause storage
//   - stored: what was shown, as an attempt: at the end of the turn, or, when the disk takes nothing more, by the repair
//     before the next turn
//   - next: the user's message if it was recorded, nothing of the attempt; the notice
//   - tests: TestAFullDiskFailsTheTurnAndLosesNothingThatWasShown
//
// failed, and its attempt kept [F4 P5]
//   - shown: the attempt, from then on as an answer
//   - stored: a second admission of the broken answer, by the user; only in the session's last turn
//   - next: the attempt verbatim; the notice that it broke off where it ends and was kept
//   - tests: TestAKeptAnswerIsInTheNextInputAsItWasShown; TestEveryAttemptOfTheLastTurnCanBeKept
//
// failed, and tried again by the user [F3 F5]
//   - shown: a new turn of the same prompt
//   - stored: a turn that names the one whose request it tries again
//   - next: what the failed turn left there, and a notice to go on with the request above in place of its words again
//   - tests: TestARetryGoesOnFromWhatTheLogHolds
//
// withheld by a check [K1 K2 P5]
//   - shown: the answer as it was said, then its verdicts and that it is withheld
//   - stored: the answer, complete, each verdict, an admission that withholds it; no call of it is run, and none has a
//     receipt
//   - next: the user's message, nothing of the answer; the notice that a check withheld it
//   - tests: TestEveryEndingEndsTheTurnOnce/withheld; TestNoCallOfAWithheldAnswerIsRun;
//     TestAnAnswerWithChecksIsNotAdmittedByRule
//
// abandoned: kill -9 in the answer [C1 C2 P4]
//   - shown: what was said until then; after the next open, that it is an attempt
//   - stored: by the repair at the next open: the journalled text as an attempt, the end, abandoned
//   - next: the user's message, nothing of the attempt; the notice that the turn was cut off
//   - tests: TestWhatAKilledDaemonHadShownIsAnAttempt; TestADaemonKilledAtAnyCommitLosesNothingThatWasShown;
//     TestWhatWasJournalledIsInTheRepairedAnswer
//
// abandoned: kill -9 while a tool runs [C2 C3 P2]
//   - shown: the call and its output until then; after the next open, what became of it
//   - stored: by the repair: done, not_started or unknown, by what the files hold now; not_started for the calls that
//     waited
//   - next: the answer with its calls, and those receipts; the notice
//   - tests: TestADaemonKilledAtAnyCommitLosesNothingThatWasShown; TestRepairSettlesCallsByEvidence
package agent
