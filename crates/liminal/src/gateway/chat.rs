//! The methods for messages, runs, permission requests and elicitations.

use serde_json::json;
use uuid::Uuid;
use wire::SessionState;
use wire::gateway::{
    AbortParams, AnswerParams, AnswerQuestionParams, Done, HistoryParams, MessageBody,
    MessageParams, Messages, NoParams, Permission, PermissionList, Problem, Question, QuestionList,
    Queue, QueueParams, QueuedRun, Run, SendParams,
};

use super::follow::{Caller, problem};
use super::messages::{self, derived_run_id, run_id};

pub(super) async fn send(caller: Caller, params: SendParams) -> Result<Run, Problem> {
    let key = &params.session_key;
    let id = caller.id_of(key)?;
    caller.follow(&id, &key.0, None).await?;
    let run_id = match params.idempotency_key {
        Some(same) => derived_run_id(&key.0, &same.0),
        None => Uuid::new_v4().to_string(),
    };
    let origin = caller.origin(Some(run_id.clone()));
    let sessions = caller.hub().sessions();
    let sent = sessions.send(&id, params.message.0, vec![], origin).await;
    sent.map_err(problem)?;
    Ok(Run { run_id })
}

pub(super) async fn history(caller: Caller, params: HistoryParams) -> Result<Messages, Problem> {
    let id = caller.id_of(&params.session_key)?;
    let key = &params.session_key.0;
    messages::page(&caller, &id, key, params.before, params.limit).await
}

pub(super) async fn message(caller: Caller, params: MessageParams) -> Result<MessageBody, Problem> {
    let id = caller.id_of(&params.session_key)?;
    let message = messages::by_number(&caller, &id, &params.session_key.0, params.number).await?;
    Ok(MessageBody { message })
}

pub(super) async fn abort(caller: Caller, params: AbortParams) -> Result<Done, Problem> {
    // A queued run may start during the first attempt and is then found running by the second.
    for _ in 0..2 {
        if stop_run(&caller, &params.run_id.0).await {
            return Ok(Done::YES);
        }
    }
    let message = "No such run is running or queued";
    Err(Problem::new(Problem::NOT_FOUND, message))
}

/// Stops the run if it is running or removes it from the queue. False if it is neither.
async fn stop_run(caller: &Caller, wanted: &str) -> bool {
    let sessions = caller.hub().sessions();
    for named in sessions.list_with_keys(&caller.hub().projects().list()) {
        let is_wanted = |request_id: &Option<String>| {
            let id = request_id.as_ref();
            id.is_some_and(|id| run_id(&named.key, id) == wanted)
        };
        let id = &named.item.id;
        let Ok(Some(info)) = sessions.info_if_open(id).await else {
            continue;
        };
        let running = info.turn.and_then(|turn| turn.request_id);
        if is_wanted(&running) {
            return sessions.cancel(id, running).await.is_ok();
        }
        let queued = info
            .queue
            .iter()
            .find(|queued| is_wanted(&queued.request_id));
        if let Some(queued) = queued {
            let removed = sessions.remove_queued(id, queued.queue_id.clone()).await;
            return removed.is_ok();
        }
    }
    false
}

pub(super) async fn queue(caller: Caller, params: QueueParams) -> Result<Queue, Problem> {
    let key = &params.session_key.0;
    let id = caller.id_of(&params.session_key)?;
    let sessions = caller.hub().sessions();
    if let Some(queue_id) = params.remove {
        let removed = sessions.remove_queued(&id, queue_id).await;
        removed.map_err(problem)?;
    }
    if params.resume {
        sessions.resume_queue(&id).await.map_err(problem)?;
    }
    let info = sessions.info(&id).await.map_err(problem)?;
    let waiting = info.queue.into_iter().map(|queued| QueuedRun {
        run_id: queued.request_id.map(|id| run_id(key, &id)),
        queue_id: queued.queue_id,
        message: queued.content,
    });
    Ok(Queue {
        waiting: waiting.collect(),
        held: info.queue_held,
    })
}

pub(super) async fn permissions(caller: Caller, _: NoParams) -> Result<PermissionList, Problem> {
    let sessions = caller.hub().sessions();
    let mut permissions = vec![];
    for named in sessions.list_with_keys(&caller.hub().projects().list()) {
        if named.item.state != SessionState::Waiting {
            continue;
        }
        let info = sessions.info(&named.item.id).await.map_err(problem)?;
        permissions.extend(info.permissions.into_iter().map(|question| {
            Permission {
                session_key: named.key.clone(),
                permission_id: question.permission_id,
                title: question.title,
                options: question
                    .options
                    .iter()
                    .map(|option| json!(option))
                    .collect(),
            }
        }));
    }
    Ok(PermissionList { permissions })
}

pub(super) async fn answer(caller: Caller, params: AnswerParams) -> Result<Done, Problem> {
    let id = caller.id_of(&params.session_key)?;
    let sessions = caller.hub().sessions();
    let answered = sessions.permit(&id, params.permission_id, params.option_id);
    answered.await.map(|_| Done::YES).map_err(problem)
}

pub(super) async fn questions(caller: Caller, _: NoParams) -> Result<QuestionList, Problem> {
    let sessions = caller.hub().sessions();
    let mut questions = vec![];
    for named in sessions.list_with_keys(&caller.hub().projects().list()) {
        if named.item.state != SessionState::Waiting {
            continue;
        }
        let asked = sessions.questions(&named.item.id).await.map_err(problem)?;
        questions.extend(asked.into_iter().map(|question| Question {
            session_key: named.key.clone(),
            question_id: question.question_id,
            message: question.message,
            ask: json!(question.ask),
        }));
    }
    Ok(QuestionList { questions })
}

pub(super) async fn answer_question(
    caller: Caller,
    params: AnswerQuestionParams,
) -> Result<Done, Problem> {
    let id = caller.id_of(&params.session_key)?;
    let sessions = caller.hub().sessions();
    let answered = sessions.answer(&id, params.question_id, params.action, params.content);
    answered.await.map(|_| Done::YES).map_err(problem)
}
